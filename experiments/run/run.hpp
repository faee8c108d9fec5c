// A scenario simulated: what simulate and compare both need.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/simulate.hpp"
#include "experiments/run/module_use.hpp"
#include "experiments/run/step_report.hpp"
#include "moe/memory.hpp"
#include "timeline/metrics.hpp"
#include "timeline/phases.hpp"

namespace moeline {

/// Metrics of whole layers in steady state.
struct Steady {
  Metrics metrics;
  double layers = 0;  ///< that the metrics' span covers
};

/// Layers of training, forward and backward.
struct ChunkResult {
  Steady steady;
};

/// Of a pipeline in prefill or decode.
struct StageResult {
  std::string blocks;  ///< "embedding, 3 dense, 12 moe"
  Time busy{};         ///< of a round, from the start of each of its passes to its end
  Memory memory{};     ///< per GPU
};

/// A step of prefill or decode, or some MoE layers of it.
struct InferenceResult {
  Steady steady;
  Memory memory{};                    ///< per GPU, of the stage that needs most
  double ttft_ms = 0;                 ///< of prefill
  std::vector<StageResult> stages{};  ///< of a pipeline (run_layers.hpp)
  int rounds = 1;                     ///< of it, simulated one after the other
  double steps_of_round = 1;          ///< in which the phases are
};

/// A whole pipeline of slots of given length: of kernels nothing is known.
struct GivenSlotsResult {};

/// What there is to know beside the timeline, by what was run; a StepReport of a whole step of training.
using RunResult = std::variant<GivenSlotsResult, ChunkResult, InferenceResult, StepReport>;

/// One of the schedules that `schedule: auto` chose among: its numbers, or why the scenario has none with it.
struct TriedSchedule {
  std::string schedule;
  std::string refused{};
  double step_ms = 0;
  std::optional<double> ttft_ms{};     ///< of prefill of the whole model
  std::optional<double> memory_gib{};  ///< where it is known
  bool fits_memory = true;

  [[nodiscard]] bool ran() const { return refused.empty(); }
  /// By which schedules are compared: a prompt may take several steps, of which step_ms is the first.
  [[nodiscard]] double time_ms() const { return ttft_ms.value_or(step_ms); }
};

struct Run {
  Setup setup;
  Program program;
  Timeline timeline;
  Metrics metrics{};
  std::vector<PhaseTimes> phases{};  ///< of rank 0; of a whole pipeline the slots of all its ranks
  double simulate_ms = 0;            ///< the engine alone
  RunResult result{};
  ModuleUses slot_modules{};  ///< of a step that has one task for each slot: what is in them
  std::vector<std::string> warnings{};
  std::vector<TriedSchedule> tried{};  ///< in the table's order, this one too; empty: the scenario named it

  /// Null where it was something else.
  [[nodiscard]] const StepReport* step() const { return std::get_if<StepReport>(&result); }
  [[nodiscard]] const InferenceResult* inference() const { return std::get_if<InferenceResult>(&result); }
  [[nodiscard]] bool has_given_slots() const { return std::holds_alternative<GivenSlotsResult>(result); }
  /// A whole pipeline, of given slots or of operators.
  [[nodiscard]] bool is_pipeline() const { return has_given_slots() || step() != nullptr; }
  /// Of the timeline, what answers why it takes so long: the step; of stages all rounds, from filling the pipeline to
  /// draining it, because a round of its own has neither begin nor end.
  [[nodiscard]] Time explained_span() const { return is_staged(setup.scenario) ? timeline.makespan : metrics.span; }
  /// REQUIRES: it is no whole pipeline.
  [[nodiscard]] const Steady& steady() const {
    MOELINE_CHECK(!is_pipeline(), setup.scenario.schedule);
    return inference() != nullptr ? inference()->steady : std::get<ChunkResult>(result).steady;
  }
};

[[nodiscard]] Run run_scenario(const Setup& setup, const SimulateOptions& options = {});

/// Which part of a GPU's memory is over, and what would hold it. In training with kMemoryReserve to spare.
/// REQUIRES: missing_gib() is above 0.
[[nodiscard]] std::string what_is_over(const Run& run);

/// What a reader of a result must know before believing it.
[[nodiscard]] std::vector<std::string> warnings_of(const Run& run);

}  // namespace moeline
