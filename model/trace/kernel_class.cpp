#include "trace/kernel_class.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/spec.hpp"
#include "trace/known_kernel.hpp"

namespace moeline {
namespace {

constexpr auto kNowhere = std::string_view::npos;

// How many characters at a place of a name are that of an anonymous namespace; 0: none. Nsight Systems has a spelling
// of its own.
std::size_t anonymous_at(std::string_view name, std::size_t place) {
  for (const std::string_view anonymous : {"(anonymous namespace)", "<unnamed>"}) {
    if (name.substr(place).starts_with(anonymous)) return anonymous.size();
  }
  return 0;
}

// Brackets around a place of a name. A '>' closes nothing where the innermost bracket is no '<', as in "(2 > 1)", nor
// behind a '-', as in "->".
class Brackets {
 public:
  [[nodiscard]] bool none() const { return open_.empty(); }
  void pass(char c, char before) {
    if (c == '<' || c == '(' || c == '{') open_.push_back(c);
    const char opening = c == ')' ? '(' : c == '}' ? '{' : c == '>' && before != '-' ? '<' : '\0';
    if (!open_.empty() && open_.back() == opening) open_.pop_back();
  }

 private:
  std::vector<char> open_;
};

// Where the parameters begin, and the last blank in front of them, both outside all brackets.
struct Parts {
  std::size_t blank = kNowhere;
  std::size_t parameters = kNowhere;
};

Parts parts_of(std::string_view name) {
  Parts parts;
  Brackets brackets;
  std::size_t blank = kNowhere;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (brackets.none() && name[i] == ' ') blank = i;
    if (brackets.none() && name[i] == '(' && anonymous_at(name, i) == 0) parts = {blank, i};
    brackets.pass(name[i], i > 0 ? name[i - 1] : '\0');
  }
  return parts.parameters == kNowhere ? Parts{blank, kNowhere} : parts;
}

// Only templates are demangled with what they return; in any other name a blank is part of it.
std::string_view without_return_type(std::string_view name) {
  const auto [blank, parameters] = parts_of(name);
  if (blank == kNowhere) return name;
  const bool is_template = name.substr(0, parameters).find('<', blank) != kNowhere;
  return is_template || name.starts_with("void ") ? name.substr(blank + 1) : name;
}

// AMD's profilers name the descriptor of a kernel, "attn_fwd.kd".
std::string_view without_ending(std::string_view name) {
  name = name.substr(0, name.find_last_not_of(' ') + 1);
  constexpr std::string_view kDescriptor = ".kd";
  return name.ends_with(kDescriptor) ? name.substr(0, name.size() - kDescriptor.size()) : name;
}

}  // namespace

std::string_view subject_of(std::string_view name) {
  name = without_return_type(name);
  for (const std::string_view wrapper : {"cutlass::device_kernel<", "cutlass::Kernel<", "cutlass::Kernel2<"}) {
    if (name.starts_with(wrapper)) name.remove_prefix(wrapper.size());
  }
  std::size_t end = name.find_first_of("<(>");
  while (end != kNowhere && anonymous_at(name, end) > 0) {
    end = name.find_first_of("<(>", end + anonymous_at(name, end));
  }
  return without_ending(name.substr(0, end));
}

namespace {

std::vector<NamePattern> checked(const std::vector<NamePattern>& classes) {
  for (const NamePattern& each : classes) {
    if (!class_named(each.meaning)) {
      throw SpecError(unknown_name("kernel class", each.meaning, kernel_class_names()));
    }
  }
  return classes;
}

}  // namespace

const std::vector<std::string>& kernel_class_names() {
  static const std::vector<std::string> names = {"attention", "gemm",       "grouped_gemm", "memory",
                                                 "small",     "other",      "dispatch",     "combine",
                                                 "barrier",   "collective", "copy",         "unclassified"};
  return names;
}

const std::string& name_of(KernelClass kernel_class) {
  return kernel_class_names()[static_cast<std::size_t>(kernel_class)];
}

std::optional<KernelClass> class_named(std::string_view name) {
  const std::vector<std::string>& names = kernel_class_names();
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<KernelClass>(found - names.begin()));
}

bool is_transfer(KernelClass kernel_class) {
  return kernel_class == KernelClass::dispatch || kernel_class == KernelClass::combine;
}

bool is_communication(KernelClass kernel_class) {
  return is_transfer(kernel_class) || kernel_class == KernelClass::barrier || kernel_class == KernelClass::collective;
}

NameMatcher::NameMatcher(const std::vector<NamePattern>& patterns) {
  compiled_.reserve(patterns.size());
  for (const NamePattern& each : patterns) compiled_.push_back({NameRegex(each.pattern), each.meaning});
}

const std::string* NameMatcher::find(std::string_view name) const {
  for (const Compiled& each : compiled_) {
    if (each.regex.found_in(name)) return &each.meaning;
  }
  return nullptr;
}

const std::string& name_of(KnownBy known_by) {
  static const std::vector<std::string> names = {"nothing", "word", "row", "pattern", "trace"};
  return names[static_cast<std::size_t>(known_by)];
}

KernelClassifier::KernelClassifier(const std::vector<NamePattern>& classes, const std::string& communication)
    : given_(checked(classes)),
      communication_(communication.empty() ? std::vector<NamePattern>{} : std::vector{NamePattern{communication, ""}}),
      has_communication_(!communication.empty()) {}

namespace {

KernelMeaning by_table(std::string_view name) {
  const KnownKernel known = known_kernel(name);
  if (known.row == nullptr) return {};
  return {known.row->kernel_class, known.by_word ? KnownBy::word : KnownBy::row, known.row};
}

}  // namespace

KernelMeaning KernelClassifier::meaning_of(std::string_view name) const {
  if (const std::string* meaning = given_.find(name)) return {*class_named(*meaning), KnownBy::pattern};
  const KernelMeaning found = by_table(name);
  if (!has_communication_) return found;
  const bool communicates = communication_.find(name) != nullptr;
  if (communicates == is_communication(found.kernel_class)) return found;
  return communicates ? KernelMeaning{KernelClass::collective, KnownBy::pattern} : KernelMeaning{};
}

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
