// A step of prefill or decode: the phases of every micro-batch and layer on each rank, and what they wait for.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "moe/inference.hpp"
#include "schedules/lowering/prepared_phases.hpp"
#include "schedules/lowering/rank_program.hpp"
#include "schedules/scenario/overlap_plan.hpp"

namespace moeline {

/// Of KV caches that move beside the step.
inline constexpr const char* kKvTransferPhase = "kv_transfer";

struct InferenceShape {
  int micro_batches = 1;
  bool overlapped = false;            ///< communication runs beside compute, and has SMs of its own
  OverlapPlan plan{};                 ///< whose order is of no matter here
  int releases = 0;                   ///< of the experts' last GEMM, beside which combine begins; 0: behind it
  std::vector<std::string> behind{};  ///< phases that run beside such a combine
};

/// A phase of a rank's step, or a piece of it. `micro_batch` -1: of all micro-batches together. Layers are counted in
/// order of execution.
struct StepPhase {
  int micro_batch = 0;
  int layer = 0;
  std::string phase;
  int piece = 0;

  auto operator<=>(const StepPhase&) const = default;
};

/// The phases of a step, prepared once for all ranks and layers that have them alike.
class InferencePhases {
 public:
  /// REQUIRES: it outlives this.
  InferencePhases(ProgramDraft& program, const InferenceShape& shape);

  [[nodiscard]] PreparedPhase& at(const StepPhase& which, int rank);
  /// That the phase of this layer has.
  [[nodiscard]] int pieces_of(const std::string& phase, int layer) const;
  [[nodiscard]] const OverlapPlan& plan() const { return shape_.plan; }
  [[nodiscard]] CommMode mode() const;
  /// Of the whole step (stage_blocks.hpp).
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] const Layer& layer(int layer) const { return layers_[static_cast<std::size_t>(layer)].content; }

 private:
  [[nodiscard]] const Block& block(int layer) const { return layers_[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] bool is_of_experts(const std::string& phase, int layer) const;
  [[nodiscard]] PhaseIdentity identity_of(const StepPhase& which, int rank) const;
  /// A piece has some of the tokens, or of the experts.
  [[nodiscard]] InferenceWork work_of(const StepPhase& which, int rank, int pieces) const;
  [[nodiscard]] std::vector<Operator> operators_of(const StepPhase& which, int rank) const;
  /// By each of the loads that stand for all that chance may give; empty where averages do.
  [[nodiscard]] OperatorsByLoad operators_by_load(const StepPhase& which, int rank) const;
  [[nodiscard]] PhaseOptions options_of(const std::string& phase) const;
  void release_blocks(const StepPhase& which, int rank, PreparedPhase& prepared);

  ProgramDraft& program_;
  InferenceShape shape_;
  std::vector<Block> blocks_;
  std::vector<Block> layers_;    // of these, in order of execution
  std::vector<int> moe_layers_;  // MoE layers of the model before each of them
  std::vector<int> alike_;       // the first of them that runs the same kernels
  PreparedPhases prepared_;
};

/// What of a step is written at once.
struct InferencePart {
  std::vector<Block> blocks;
  int micro_batch = -1;  ///< of embedding, heads and MTP; -1: of all together
  int of_group = 0;      ///< which of the ranks that share a layer has the work
};

/// One rank's step, or a stage's part of it, while it is being written.
class InferenceRank {
 public:
  /// REQUIRES: both outlive it.
  InferenceRank(InferencePhases& phases, RankProgram& rank, InferencePart part)
      : phases_(phases), rank_(rank), part_(std::move(part)) {}
  InferenceRank(const InferenceRank&) = delete;  // it points into its own map
  InferenceRank& operator=(const InferenceRank&) = delete;

  [[nodiscard]] const std::vector<Block>& blocks() const { return part_.blocks; }
  /// What the layer at this position in order of execution consists of.
  [[nodiscard]] const Layer& content(int layer) const { return phases_.layer(layer); }
  /// That it begins with. REQUIRES: something was appended.
  [[nodiscard]] TaskId first() const { return first_; }
  /// Appends a phase; a low-latency transfer as its two halves.
  void append(const StepPhase& which, StreamName stream);
  void append_issue(const StepPhase& which);
  /// Nothing before the last piece, where all are received at once.
  void append_receive(const StepPhase& which);
  [[nodiscard]] int pieces_of(const std::string& phase, int layer) const { return phases_.pieces_of(phase, layer); }
  /// embedding, lm_head, mtp or draft_head, once what was appended of this layer has ended.
  void append_whole(const std::string& phase, int layer);
  /// The last phase appended may start only when the one before it has ended, whatever their streams.
  void chain();
  /// The next phase does not wait for the last one appended.
  void leave_running() { last_ = before_last_; }
  /// Adds the model's data dependencies.
  void connect();

 private:
  [[nodiscard]] PreparedPhase& prepared(const StepPhase& which) { return phases_.at(which, part_.of_group); }
  [[nodiscard]] Place place_of(const StepPhase& which, StreamName stream) const;
  void place(const StepPhase& which, const PhaseTasks& tasks);
  void connect(const StepPhase& which, const PhaseTasks& tasks, const PhaseDependency& dependency);

  InferencePhases& phases_;
  RankProgram& rank_;
  InferencePart part_;
  TaskId first_ = kNoTask;
  std::map<StepPhase, PhaseTasks> placed_;
  const PhaseTasks* last_ = nullptr;
  const PhaseTasks* before_last_ = nullptr;
};

/// The step that `append` writes, on every simulated rank. `plan_file`: to blame for an order that cannot run.
[[nodiscard]] Program inference_program(const Setup& setup, const InferenceShape& shape,
                                        const std::function<void(InferenceRank&)>& append);

}  // namespace moeline
