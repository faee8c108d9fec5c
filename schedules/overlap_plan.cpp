#include "schedules/overlap_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/file.hpp"
#include "base/spec.hpp"

namespace moeline {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string name_of(const PlanEntry& entry, const PlanContents& contents) {
  const char* part = entry.part == PlanEntry::Part::issue     ? "issue "
                     : entry.part == PlanEntry::Part::receive ? "receive "
                                                              : "";
  const std::string micro_batch = contents.micro_batches > 1 ? fmt::format(" {}", entry.micro_batch) : "";
  return part + entry.phase + micro_batch;
}

// Everything that must be placed, by name.
std::vector<std::string> wanted(const PlanContents& contents) {
  std::vector<std::string> names;
  for (int micro_batch = 0; micro_batch < contents.micro_batches; ++micro_batch) {
    for (const std::string& phase : contents.phases) {
      PlanEntry entry{phase, micro_batch};
      if (contains(contents.halved, phase)) {
        entry.part = PlanEntry::Part::issue;
        names.push_back(name_of(entry, contents));
        entry.part = PlanEntry::Part::receive;
      }
      names.push_back(name_of(entry, contents));
    }
  }
  return names;
}

PlanEntry parse(const std::string& text) {
  PlanEntry entry;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    if (word == "previous" || word == "next") {
      entry.layer_offset = word == "next" ? 1 : -1;
    } else if (word == "issue") {
      entry.part = PlanEntry::Part::issue;
    } else if (word == "receive") {
      entry.part = PlanEntry::Part::receive;
    } else if (word.size() == 1 && word[0] >= '0' && word[0] <= '9' && !entry.phase.empty()) {
      entry.micro_batch = word[0] - '0';
    } else {
      entry.phase += entry.phase.empty() ? word : " " + word;
    }
  }
  return entry;
}

// Phases listed at `key`; `placed` says where each of them stands so far.
std::vector<PlanEntry> read_stream(const Spec& spec, const std::string& key, const PlanContents& contents,
                                   std::map<std::string, std::string>& placed) {
  const std::vector<std::string> known = wanted(contents);
  std::vector<PlanEntry> entries;
  for (const std::string& text : spec.texts(key)) {
    const PlanEntry entry = parse(text);
    if (contains(contents.absent, entry.phase)) continue;
    const std::string name = name_of(entry, contents);
    if (!contains(known, name) || entry.micro_batch >= contents.micro_batches) {
      throw spec.error(key, "names an " + unknown_name("phase", text, known));
    }
    if (const auto [at, first] = placed.emplace(name, key); !first) {
      throw spec.error(key, fmt::format("repeats phase '{}', which stands in {}", name, at->second));
    }
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

OverlapPlan load_overlap_plan(const std::string& schedule, const std::string& overlap, const PlanContents& contents) {
  const Spec spec =
      Spec::load(overlap == "default" ? home() / "schedules" / (schedule + ".yaml") : std::filesystem::path(overlap));
  spec.expect({"compute", "communication", "side"});
  OverlapPlan plan;
  plan.file = spec.file();
  std::map<std::string, std::string> placed;
  plan.compute = read_stream(spec, "compute", contents, placed);
  if (spec.has("communication")) plan.communication = read_stream(spec, "communication", contents, placed);
  for (const std::string& name : wanted(contents)) {
    if (!placed.contains(name)) throw spec.error("compute", fmt::format("and communication lack phase '{}'", name));
  }
  if (!spec.has("side")) return plan;
  for (const std::string& phase : spec.texts("side")) {
    if (!contains(contents.phases, phase)) {
      throw spec.error("side", "names an " + unknown_name("phase", phase, contents.phases));
    }
    if (contains(plan.side, phase))
      throw spec.error("side", fmt::format("repeats phase '{}', which stands in side", phase));
    if (!phase.ends_with("(W)")) {
      throw spec.error("side", fmt::format("has '{}': only weight gradients are independent kernels", phase));
    }
    if (placed[phase] != "compute") throw spec.error("side", fmt::format("has '{}', which is not in compute", phase));
    plan.side.push_back(phase);
  }
  return plan;
}

}  // namespace moeline
