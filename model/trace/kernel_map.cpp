#include "trace/kernel_map.hpp"

#include "base/spec.hpp"

namespace moeline {
namespace {

std::vector<NamePattern> patterns(const Spec& file, const std::string& section) {
  std::vector<NamePattern> read;
  const Spec entries = file.map_or_empty(section);
  for (const std::string& name : entries.keys()) {
    read.push_back({entries.text(name), name});
    try {
      (void)NameMatcher(std::vector{read.back()});
    } catch (const SpecError& error) {
      throw entries.error(name, error.what());
    }
  }
  return read;
}

}  // namespace

KernelMap load_kernel_map(const std::filesystem::path& path) {
  const Spec file = Spec::load(path);
  file.expect({"schema", "communication", "classes", "phases", "modules"});
  (void)file.integer("schema", 1, 1);
  KernelMap map;
  map.communication = file.text_or("communication", "");
  if (file.has("classes")) file.map("classes").expect(kernel_class_names());
  map.classes = patterns(file, "classes");
  map.phases = patterns(file, "phases");
  map.modules = patterns(file, "modules");
  try {
    (void)KernelClassifier({}, map.communication);
  } catch (const SpecError& error) {
    throw file.error("communication", error.what());
  }
  return map;
}

}  // namespace moeline
