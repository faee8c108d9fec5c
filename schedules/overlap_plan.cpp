#include "schedules/overlap_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/file.hpp"
#include "base/spec.hpp"
#include "moe/training.hpp"

namespace moeline {

OverlapPlan load_overlap_plan(const std::string& schedule, const std::string& overlap) {
  Spec spec = Spec::load(overlap == "default" ? home() / "schedules" / (schedule + ".yaml")
                                              : std::filesystem::path(overlap));
  OverlapPlan plan;
  plan.file = spec.file();
  const std::vector<std::string>& known = training_phase_names();
  std::map<std::string, int> placed;
  const auto read = [&](const char* key) {
    std::vector<std::string> phases = spec.texts(key);
    for (const std::string& phase : phases) {
      if (std::find(known.begin(), known.end(), phase) == known.end()) {
        throw spec.error(key, "names an " + unknown_name("phase", phase, known));
      }
    }
    return phases;
  };
  plan.compute = read("compute");
  plan.communication = read("communication");
  if (spec.has("side")) plan.side = read("side");
  for (const auto& stream : {plan.compute, plan.communication}) {
    for (const std::string& phase : stream) ++placed[phase];
  }
  for (const std::string& phase : known) {
    if (placed[phase] != 1) {
      throw SpecError(plan.file, 0, fmt::format("phase '{}' stands {} times; each must stand once", phase,
                                                placed[phase]));
    }
  }
  spec.done();
  return plan;
}

}  // namespace moeline
