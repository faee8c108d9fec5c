#include "experiments/run/run_stages.hpp"

#include "experiments/run/expected_waits.hpp"
#include "experiments/run/inference_memory.hpp"
#include "experiments/run/pipeline_layers.hpp"
#include "experiments/run/run_layers.hpp"
#include "schedules/pipeline/inference_pipeline.hpp"

namespace moeline {
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

Time end_of(const StageRound& round, const Timeline& timeline) { return timeline.spans[round.back().back().ends].end; }

Window steady_window(const Setup& setup, const Rounds& rounds, std::size_t steady, const Timeline& timeline) {
  if (setup.scenario.phase() == WorkloadPhase::decode) {
    return {start_of(rounds[steady], timeline), start_of(rounds[steady + 1], timeline)};
  }
  return {end_of(rounds[steady - 1], timeline), end_of(rounds[steady], timeline)};
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
  if (!decode) result.ttft_ms = to_us(end_of(pipeline.rounds.front(), run.timeline)) / 1e3;
  const std::vector<Memory> memories = memory_of_stages(setup);
  result.memory = fullest(memories);
  result.stages = results_of(setup, memories, steady, run.timeline);
  run.result = std::move(result);
  return run;
}

}  // namespace moeline
