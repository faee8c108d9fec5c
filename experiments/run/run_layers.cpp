#include "experiments/run/run_layers.hpp"

#include <algorithm>
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

// Starts between which layers repeat, by their numbers.
struct Repeating {
  std::size_t first = 0, last = 0;
};

// Whole periods of layers that differ (windows that alternate; two where nothing repeats), of half of the layers:
// behind those that run in, and before the last two, which nothing follows that would be in their way. Where each has
// loads of its own, all.
Repeating repeating(std::size_t starts, const Setup& setup) {
  constexpr std::size_t kRunOut = 2;
  if (setup.experts_differ()) return {0, starts - 1};
  constexpr int kIrregular = 2;
  const int repeats = layer_period(setup.model);
  const auto period = static_cast<std::size_t>(repeats > 0 ? repeats : kIrregular);
  const std::size_t last = starts - 1 - std::min(kRunOut, (starts - 2) / 2);
  return {last - std::max(std::min(period, last), last / 2 / period * period), last};
}

Steady steady_state(const Run& run) {
  constexpr std::size_t kFewest = 4;
  constexpr int kEnoughLayers = 8;
  const std::vector<Time> starts = layer_starts(run);
  if (starts.size() < kFewest) {  // too few to repeat: more of them, alone, say what one takes
    Setup longer = run.setup;
    longer.scenario.whole_model = false;
    longer.scenario.layers = kEnoughLayers;
    return run_layers(longer).steady();
  }
  const auto [first, last] = repeating(starts.size(), run.setup);
  return {measure(run.program.graph, run.timeline, starts[first], starts[last]), static_cast<double>(last - first)};
}

// Of a layer on a stream: when it is done, and what its tasks take alone.
struct LayerOnStream {
  Time end = Time::min();
  Time work{};
};

// Of rank 0's streams, the host's too, the layers of the starts. What waits for the slowest rank is nobody's work.
std::vector<std::vector<LayerOnStream>> layers_by_stream(const Run& run, std::size_t layers) {
  const TaskGraph& graph = run.program.graph;
  std::vector<bool> waits(graph.size(), false);
  for (const Meeting& meeting : run.program.meetings) {
    if (meeting.wait != kNoTask) waits[meeting.wait] = true;
  }
  const auto first = static_cast<std::uint32_t>(run.setup.first_main_layer());
  std::vector<std::vector<LayerOnStream>> by_stream(graph.streams().size(), std::vector<LayerOnStream>(layers));
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Label& label = graph.label(task);
    const Phase& phase = graph.phases()[label.phase];
    if (phase.rank != 0 || phase.layer < first || phase.layer >= first + layers || waits[task]) continue;
    LayerOnStream& layer = by_stream[label.stream][phase.layer - first];
    layer.end = std::max(layer.end, run.timeline.spans[task].end);
    layer.work += graph.task(task).solo + graph.task(task).delay;
  }
  return by_stream;
}

// Two periods one after the other take equally long, and no stream takes longer for one, or has more to do in it, so
// that it would be what the others wait for some layers later: so would all that were left out.
bool repeats(const Run& run) {
  constexpr double kEqual = 1e-4;
  const std::vector<Time> starts = layer_starts(run);
  const auto period = static_cast<std::size_t>(run.setup.fold.period);
  const std::size_t last = repeating(starts.size(), run.setup).last;
  const Time now = starts[last] - starts[last - period];
  const Time before = starts[last - period] - starts[last - 2 * period];
  if (std::abs(ratio(now, before) - 1) >= kEqual) return false;
  const auto by_stream = layers_by_stream(run, starts.size());
  return std::all_of(by_stream.begin(), by_stream.end(), [&](const std::vector<LayerOnStream>& layers) {
    Time work{};
    for (std::size_t layer = last - period; layer < last; ++layer) work += layers[layer].work;
    const bool behind = layers[last - period].end != Time::min() &&
                        ratio(layers[last].end - layers[last - period].end, now) >= 1 + kEqual;
    return !behind && ratio(work, now) < 1 + kEqual;
  });
}

}  // namespace

Run simulated(const Setup& setup, Program program, const SimulateOptions& options) {
  const auto before = std::chrono::steady_clock::now();
  Timeline timeline = simulate(program.graph, options);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
  return {.setup = setup, .program = std::move(program), .timeline = std::move(timeline), .simulate_ms = took.count()};
}

Run run_layers(const Setup& setup, const SimulateOptions& options) {
  Run run = simulated(setup, program_with_waits(setup), options);
  run.phases = phase_times(run.program.graph, run.timeline, 0);
  run.metrics = measure(run.program.graph, run.timeline);
  if (setup.scenario.phase() == WorkloadPhase::train) {
    run.result = ChunkResult{{run.metrics, static_cast<double>(setup.scenario.layers)}};
    return run;
  }
  const Steady steady = steady_state(run);
  run.result = InferenceResult{.steady = steady};
  if (setup.fold.left_out == 0) return run;
  if (!repeats(run)) return run_layers(unfolded(setup), options);
  extend(run.metrics, steady.metrics, setup.fold.left_out / steady.layers);
  return run;
}

}  // namespace moeline
