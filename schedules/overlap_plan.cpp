#include "schedules/overlap_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/file.hpp"
#include "base/spec.hpp"
#include "moe/training.hpp"

namespace moeline {
namespace {

// Phases listed at `key`; `placed` says where each of them stands so far.
std::vector<std::string> read_stream(const Spec& spec, const std::string& key,
                                     std::map<std::string, std::string>& placed) {
  std::vector<std::string> phases = spec.texts(key);
  const std::vector<std::string>& known = training_phase_names();
  for (const std::string& phase : phases) {
    if (std::find(known.begin(), known.end(), phase) == known.end()) {
      throw spec.error(key, "names an " + unknown_name("phase", phase, known));
    }
    if (const auto [at, first] = placed.emplace(phase, key); !first) {
      throw spec.error(key, fmt::format("repeats phase '{}', which stands in {}", phase, at->second));
    }
  }
  return phases;
}

void refuse_missing(const Spec& spec, const std::map<std::string, std::string>& placed) {
  for (const std::string& phase : training_phase_names()) {
    if (!placed.contains(phase)) throw spec.error("compute", fmt::format("and communication lack phase '{}'", phase));
  }
}

}  // namespace

OverlapPlan load_overlap_plan(const std::string& schedule, const std::string& overlap) {
  const Spec spec =
      Spec::load(overlap == "default" ? home() / "schedules" / (schedule + ".yaml") : std::filesystem::path(overlap));
  spec.expect({"compute", "communication", "side"});
  OverlapPlan plan;
  plan.file = spec.file();
  std::map<std::string, std::string> placed;
  plan.compute = read_stream(spec, "compute", placed);
  plan.communication = read_stream(spec, "communication", placed);
  refuse_missing(spec, placed);
  if (!spec.has("side")) return plan;
  std::map<std::string, std::string> on_side;
  plan.side = read_stream(spec, "side", on_side);
  for (const std::string& phase : plan.side) {
    if (!phase.ends_with("(W)")) {
      throw spec.error("side", fmt::format("has '{}': only weight gradients are independent kernels", phase));
    }
    if (placed[phase] != "compute") throw spec.error("side", fmt::format("has '{}', which is not in compute", phase));
  }
  return plan;
}

}  // namespace moeline
