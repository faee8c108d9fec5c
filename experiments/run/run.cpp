#include "experiments/run/run.hpp"

#include <map>

#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/expected_waits.hpp"
#include "experiments/run/run_layers.hpp"
#include "experiments/run/slot_level.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "timeline/metrics.hpp"

namespace moeline {
namespace {

void note_waits(Run& run) {
  std::map<PhaseKey, Time> waits;
  for (const ComputeWait& wait : compute_waits(run.program.graph, run.timeline, 0)) {
    const Phase& phase = run.program.graph.phases()[wait.phase];
    waits[{phase.layer, phase.name, phase.micro_batch}] += wait.wait;
  }
  for (PhaseTimes& phase : run.phases) {
    const auto found = waits.find(key_of(phase));
    if (found != waits.end()) phase.wait = found->second;
  }
}

// A rank's bubble is the whole step's: also before its first slot and after its last.
Metrics measure_step(const Run& run) {
  return measure(run.program.graph, run.timeline, Time::zero(), run.timeline.makespan);
}

Run run_training_step(const Setup& setup, const SimulateOptions& options) {
  const Setup waiting = with_expected_waits(at_sustained_clock(setup));
  SlotKinds kinds(waiting);
  const bool by_slot = setup.scenario.level == Level::by_slot;
  const auto timing = [&](const Slot& slot, int rank) { return kinds.timing_of(slot, rank); };
  TrainingStep step = by_slot ? training_step(waiting, kinds.stages(), timing) : training_step(waiting);
  Run run = simulated(waiting, std::move(step.program), options);
  StepReport report = report_step(setup, run.program, run.timeline, std::move(step.layout));
  run.phases = std::move(report.slots);
  run.result = std::move(report);
  run.metrics = by_slot ? kinds.metrics(run.timeline.makespan) : measure_step(run);
  if (by_slot) kinds.add_operators(run.program);
  if (by_slot) run.slot_modules = kinds.modules();
  return run;
}

Run run_given_slots(const Setup& setup, const SimulateOptions& options) {
  Run run = simulated(setup, given_slots(setup.scenario), options);
  run.phases = phase_times(run.program.graph, run.timeline);
  run.metrics = measure_step(run);
  return run;
}

Run run_step_or_chunk(const Setup& setup, const SimulateOptions& options) {
  if (is_staged(setup.scenario)) return run_stages(at_sustained_clock(setup), options);
  Run run = run_layers(at_sustained_clock(setup), options);
  note_waits(run);
  auto* inference = std::get_if<InferenceResult>(&run.result);
  if (inference == nullptr) return run;
  inference->memory = memory_of(setup);
  const bool has_prompts = prefill_of(setup.scenario.workload) != nullptr;
  if (setup.scenario.whole_model && has_prompts) inference->ttft_ms = time_to_first_token_ms(run);
  return run;
}

}  // namespace

Run run_scenario(const Setup& setup, const SimulateOptions& options) {
  Run run = on_behalf_of(setup.scenario.file, [&] {
    return setup.scenario.slot_costs          ? run_given_slots(setup, options)
           : is_training_step(setup.scenario) ? run_training_step(setup, options)
                                              : run_step_or_chunk(setup, options);
  });
  run.warnings = warnings_of(run);
  return run;
}

}  // namespace moeline
