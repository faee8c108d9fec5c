#include "experiments/run/run_layers.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "engine/simulate.hpp"
#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/build_program.hpp"
#include "experiments/run/expected_waits.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "schedules/pipeline/inference_pipeline.hpp"
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

namespace {

using Rounds = std::vector<StageRound>;

// From one end of the pipeline, so that a window is as long as the rhythm: of decode where micro-batches enter, of
// prefill where prompts leave.
struct Window {
  Time begin, end;
  [[nodiscard]] Time length() const { return end - begin; }
};

Time start_of(const StageRound& round, const Timeline& timeline) {
  return timeline.spans[round.front().front().begins].start;
}

Time round_end(const StageRound& round, const Timeline& timeline) {
  return timeline.spans[round.back().back().ends].end;
}

Window steady_window(const Setup& setup, const Rounds& rounds, std::size_t steady, const Timeline& timeline) {
  if (setup.scenario.phase() == WorkloadPhase::decode) {
    return {start_of(rounds[steady], timeline), start_of(rounds[steady + 1], timeline)};
  }
  return {round_end(rounds[steady - 1], timeline), round_end(rounds[steady], timeline)};
}

// From the start of each pass of a round, for as long as the rhythm: each phase comes once in that time.
std::vector<PhaseTimes> phases_of(const StageRound& round, Time rhythm, const Program& program,
                                  const Timeline& timeline) {
  std::vector<PhaseTimes> phases = phase_times(program.graph, timeline);
  std::erase_if(phases, [&](const PhaseTimes& phase) {
    const Time begin = timeline.spans[round[phase.rank][phase.micro_batch].begins].start;
    return phase.start < begin || phase.start >= begin + rhythm;
  });
  return phases;
}

std::vector<StageResult> results_of(const Setup& setup, const std::vector<Memory>& memories, const StageRound& round,
                                    const Timeline& timeline) {
  const std::vector<StageBlocks> stages = inference_stages(setup);
  std::vector<StageResult> results;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    StageResult result{.blocks = describe(stages[stage]), .memory = memories[stage]};
    for (const StagePass& pass : round[stage]) {
      result.busy += timeline.spans[pass.ends].end - timeline.spans[pass.begins].start;
    }
    results.push_back(std::move(result));
  }
  return results;
}

// Of the layers of one pass, all micro-batches' counted.
Steady layers_of(const Setup& alone, int micro_batches) {
  Steady steady = run_layers(alone).steady();
  steady.layers /= micro_batches;
  return steady;
}

}  // namespace

Run run_stages(const Setup& setup, const SimulateOptions& options) {
  const bool decode = setup.scenario.phase() == WorkloadPhase::decode;
  const Setup alone = one_pass(setup);
  InferencePipeline pipeline = inference_pipeline(setup);
  wait_as_alone(alone, pipeline.program);
  InferenceResult result{.steady = layers_of(alone, decode ? passes(setup.scenario) : 1)};
  result.rounds = static_cast<int>(pipeline.rounds.size());
  result.steps_of_round = pipeline.program.steps / result.rounds;
  Run run = simulated(setup, std::move(pipeline.program), options);
  const StageRound& steady = pipeline.rounds[pipeline.steady];
  const Window window = steady_window(setup, pipeline.rounds, pipeline.steady, run.timeline);
  run.phases = phases_of(steady, window.length(), run.program, run.timeline);
  run.metrics = scaled(measure(run.program.graph, run.timeline, window.begin, window.end), 1 / result.steps_of_round);
  if (!decode) result.ttft_ms = to_us(round_end(pipeline.rounds.front(), run.timeline)) / 1e3;
  const std::vector<Memory> memories = memory_of_stages(setup);
  result.memory = fullest(memories);
  result.stages = results_of(setup, memories, steady, run.timeline);
  run.result = std::move(result);
  return run;
}

namespace {

// Time of one step with `tokens` new tokens of a prompt behind `cached` ones, at the clock that it lets the GPU keep.
double chunk_ms(const Setup& setup, int tokens, int cached) {
  Setup chunk = setup;
  PrefillWorkload& w = std::get<PrefillWorkload>(chunk.scenario.workload);
  w.tokens = std::max(2, tokens);  // one for each micro-batch
  w.cached_len = cached;
  w.prompt_len = cached + w.tokens;
  return to_us(run_layers(at_sustained_clock(chunk)).metrics.span) / 1e3;
}

// As evenly as whole numbers let them be, the first and the last with them.
std::vector<int> spread_evenly(int count, int most) {
  const int samples = std::min(count, most);
  std::vector<int> positions;
  for (int i = 0; i < samples; ++i) {
    const double place = samples > 1 ? static_cast<double>(i) * (count - 1) / (samples - 1) : 0;
    positions.push_back(static_cast<int>(std::lround(place)));
  }
  return positions;
}

// Of values at whole places from the first to before the last, on the line between these two.
double sum_between(int places, double first, double last) { return places * first + (last - first) * (places - 1) / 2; }

// Later chunks see more keys, and a chunk's time is nearly a line in them: those between two that are simulated lie on
// the line between these.
double whole_chunks_ms(const Run& run, int count) {
  constexpr int kMostSamples = 8;
  const PrefillWorkload& w = *prefill_of(run.setup.scenario.workload);
  double before_ms = to_us(run.metrics.span) / 1e3, sum = 0;
  int before = 0;
  for (const int position : spread_evenly(count, kMostSamples)) {
    if (position == 0) continue;
    const double ms = chunk_ms(run.setup, w.tokens, w.cached_len + position * w.tokens);
    sum += sum_between(position - before, before_ms, ms);
    before = position;
    before_ms = ms;
  }
  return sum + before_ms;
}

}  // namespace

double time_to_first_token_ms(const Run& run) {
  const PrefillWorkload& w = *prefill_of(run.setup.scenario.workload);
  const int steps = steps_per_prompt(w);
  const bool mean_step = run.setup.scenario.phase() == WorkloadPhase::mixed;
  if (steps == 1 || mean_step) return steps * to_us(run.metrics.span) / 1e3;
  const int remaining = w.prompt_len - w.cached_len;
  const int rest = remaining % w.tokens;
  return whole_chunks_ms(run, remaining / w.tokens) + (rest > 0 ? chunk_ms(run.setup, rest, w.prompt_len - rest) : 0);
}

}  // namespace moeline
