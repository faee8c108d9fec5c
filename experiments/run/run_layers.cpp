#include "experiments/run/run_layers.hpp"

#include <chrono>
#include <cmath>

#include "engine/simulate.hpp"
#include "experiments/run/expected_waits.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

// Starts of the phase mlp of the first micro-batch, by MoE layer of the model in order of execution.
std::vector<Time> layer_starts(const Run& run) {
  const int first = run.setup.first_main_layer();
  std::vector<Time> starts;
  for (const PhaseTimes& phase : run.phases) {
    const int layer = static_cast<int>(phase.layer);
    const bool moe = layer >= first && layer < first + run.setup.simulated_layers();
    if (moe && phase.phase == "mlp" && phase.micro_batch == 0) starts.push_back(phase.start);
  }
  return starts;
}

// The second half of the MoE layers, in whole periods of layers that differ (windows that alternate): by then the
// layers repeat. Where each has loads of its own, all but the last.
Steady steady_state(const Run& run) {
  constexpr std::size_t kFewest = 4;
  constexpr int kEnough = 8;
  const std::vector<Time> starts = layer_starts(run);
  if (starts.size() < kFewest) {  // too few to repeat: more of them, alone, say what one takes
    Setup longer = run.setup;
    longer.scenario.whole_model = false;
    longer.scenario.layers = kEnough;
    return run_layers(longer).steady();
  }
  const std::size_t last = starts.size() - 1;
  const std::size_t periods = run.setup.experts_differ() ? last : (last / 2 + 1) / 2 * 2;
  return {measure(run.program.graph, run.timeline, starts[last - periods], starts[last]), static_cast<double>(periods)};
}

// The last two periods took equally long: so would all that were left out.
bool repeats(const Run& run) {
  constexpr double kEqual = 1e-4;
  const std::vector<Time> starts = layer_starts(run);
  const auto period = static_cast<std::size_t>(run.setup.fold.period);
  const std::size_t last = starts.size() - 1;
  const Time now = starts[last] - starts[last - period];
  const Time before = starts[last - period] - starts[last - 2 * period];
  return std::abs(ratio(now, before) - 1) < kEqual;
}

}  // namespace

Run simulated(const Setup& setup, Program program, bool record_changes) {
  const auto before = std::chrono::steady_clock::now();
  Timeline timeline = simulate(program.graph, {.record_changes = record_changes});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
  return {.setup = setup, .program = std::move(program), .timeline = std::move(timeline), .simulate_ms = took.count()};
}

Run run_layers(const Setup& setup, bool record_changes) {
  Run run = simulated(setup, program_with_waits(setup), record_changes);
  run.phases = phase_times(run.program.graph, run.timeline);
  std::erase_if(run.phases, [](const PhaseTimes& phase) { return phase.rank > 0; });
  run.metrics = measure(run.program.graph, run.timeline);
  if (setup.scenario.phase() == WorkloadPhase::train) {
    run.result = ChunkResult{{run.metrics, static_cast<double>(setup.scenario.layers)}};
    return run;
  }
  const Steady steady = steady_state(run);
  run.result = InferenceResult{.steady = steady};
  if (setup.fold.left_out == 0) return run;
  if (!repeats(run)) return run_layers(unfolded(setup), record_changes);
  extend(run.metrics, steady.metrics, setup.fold.left_out / steady.layers);
  return run;
}

}  // namespace moeline
