// Bytes as a scenario and the files that it names: everything until a step would be simulated.
#include <cmath>

#include "base/file.hpp"
#include "experiments/memory/inference_memory.hpp"
#include "experiments/serve/traffic.hpp"
#include "moe/training.hpp"
#include "schedules/scenario/candidates.hpp"
#include "schedules/scenario/fold.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {
namespace {

void check(const std::vector<Operator>& kernels, const std::string& phase) {
  for (const Operator& op : kernels) {
    MOELINE_CHECK(std::isfinite(op.flops) && op.flops >= 0 && std::isfinite(op.bytes) && op.bytes >= 0, phase);
  }
}

// The work of one rank in one main layer, and what it must hold.
void check(const Setup& setup) {
  const bool trains = setup.scenario.phase() == WorkloadPhase::train;
  if (trains && setup.scenario.slot_costs) return;
  if (trains) {
    for (const std::string& phase : training_phase_names()) {
      check(training_phase(phase, setup.layer_work(phase.ends_with("(F)"), 0)), phase);
    }
    return;
  }
  const double bytes = memory_of(setup).total();
  MOELINE_CHECK(std::isfinite(bytes) && bytes >= 0, shortest(bytes));
  const InferenceWork work = setup.inference_work({});
  const Block block = layer_of(setup.model, setup.model.first_main_layer());
  for (const std::string& phase : setup.layer_phases()) check(inference_phase(phase, work, block), phase);
}

}  // namespace

bool feed_scenario(std::string_view bytes) {
  const FedFiles files(bytes, "scenario.yaml");
  try {
    const std::string content = read_text(files.first());
    const Spec spec = Spec::parse(files.first(), content);
    if (is_served(spec)) {
      (void)read_serve(spec.map("workload"));
      return true;
    }
    for (const Candidate& candidate : read_candidates(files.first(), content, {})) {
      if (candidate.setup) check(folded(*candidate.setup));
    }
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
