#include "experiments/run/what_fits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/run/step_memory.hpp"

namespace moeline {
namespace {

double memory_gib_with(const Run& run, const TrainingChoices& choices) {
  Setup setup = run.setup;
  setup.scenario.training = choices;
  StepReport report = *run.step();
  report.slots = run.phases;
  add_memory(setup, report);
  return gib(report.fullest().peak.total());
}

void recompute_all(TrainingChoices& c) {
  c.recompute = Recompute::full;
  c.narrow_activations = false;
}
void split_optimizer(TrainingChoices& c) { c.zero = std::max(c.zero, 1); }
void split_everything(TrainingChoices& c) { c.zero = 3; }
void narrow_moments(TrainingChoices& c) { c.fp32_moments = false; }
void narrow_gradients(TrainingChoices& c) { c.fp32_gradients = false; }

struct Remedy {
  const char* key;
  void (*apply)(TrainingChoices&);
};
// In the order in which they cost: time first, then precision. Everything is split by Megatron, pass by pass.
constexpr Remedy kRemedies[] = {{"zero=1", split_optimizer},
                                {"recompute=full", recompute_all},
                                {"zero=3", split_everything},
                                {"moments=bf16", narrow_moments},
                                {"gradients=bf16", narrow_gradients}};

bool may_split_everything(const Run& run) {
  const Scenario& s = run.setup.scenario;
  return s.training.by_megatron() && s.training.overlap_gradients && !overlaps_passes(s);
}

}  // namespace

std::string what_makes_it_fit(const Run& run) {
  TrainingChoices choices = run.setup.scenario.training;
  std::vector<std::string> made;
  double best = memory_gib_with(run, choices);
  for (const Remedy& remedy : kRemedies) {
    if (remedy.apply == split_everything && !may_split_everything(run)) continue;
    remedy.apply(choices);
    const double memory = memory_gib_with(run, choices);
    if (memory >= best) continue;  // it was so already
    best = memory;
    made.push_back(fmt::format("training.{}", remedy.key));
    if (best <= run.setup.machine.facts.memory_gib) {
      return fmt::format("{} {} it fit: {:.1f} GiB", fmt::join(made, ", "), made.size() == 1 ? "makes" : "make", best);
    }
  }
  const std::string tried = made.empty() ? "" : fmt::format(", even with {} ({:.1f} GiB)", fmt::join(made, ", "), best);
  return fmt::format("tp, pp or ep must be larger, or the micro-batch smaller{}", tried);
}

}  // namespace moeline
