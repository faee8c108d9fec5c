// A layout of training: how the model is split over the GPUs, in which order a rank works, and what it computes again.
#pragma once

#include <string>
#include <vector>

#include "architecture/architecture.hpp"
#include "base/memo.hpp"
#include "experiments/plan_training/training_job.hpp"
#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// What a rank does to keep less.
struct MemorySaving {
  std::string recompute = "default";  ///< as of training.recompute
  std::string offload = "default";    ///< as of training.offload
  bool offload_optimizer = false;

  bool operator==(const MemorySaving&) const = default;
};

struct Layout {
  std::size_t machine = 0;  ///< of the job's
  Parallelism split;
  int micro_batch_size = 1;
  std::string schedule = "1f1b";
  std::string overlap = "default";  ///< or "combined", "none" as of a scenario
  MemorySaving saving{};

  bool operator==(const Layout&) const = default;
};

/// "tp 2, pp 8 x 2, ep 16, dp 16, micro-batch 1, interleaved-1f1b combined, recompute full"
[[nodiscard]] std::string describe(const Layout& layout);

/// The scenario of a layout, without the job's changes. `level` as of a scenario.
[[nodiscard]] std::string scenario_of(const Layout& layout, const TrainingJob& job, const char* level);

/// What the job and the layout's machine change in it, as after simulate --set.
[[nodiscard]] std::vector<std::string> changes_of(const Layout& layout, const TrainingJob& job);
/// The scenario of a layout, by slots, with these changes. Throws SpecError where it is none.
[[nodiscard]] Setup setup_of(const Layout& layout, const TrainingJob& job);

/// Every way to split the GPUs of a machine: tp, cp, pp, ep as the job lists them, dp what is left, crossed with its
/// micro-batch sizes. Left out what does not divide. Where the job lists none: tp 1, 2, 4, ... to a node; cp 1, and
/// above 16 Ki tokens of a sequence also 2, 4, 8; pp 1, 2, 4, ... to 32 and to the layers; ep 1, 2, 4, ... to 64 and to
/// the experts; micro-batches of 1, 2 and 4 sequences.
[[nodiscard]] std::vector<Layout> splits_of(const TrainingJob& job, const Architecture& model, std::size_t machine);

/// What a rank may do to keep less, from the fastest to the leanest. It computes again what the job lists, or by
/// Megatron's operators nothing, all of its modules that the model has, each whole layer; by DeepSeek's their
/// selection, each whole layer. It offloads what the job lists, or nothing.
[[nodiscard]] std::vector<MemorySaving> savings_of(const TrainingJob& job, const Architecture& model, bool by_megatron);

/// Orders of work that stand for all of them while splits are compared: 1F1B and, with a pipeline, interleaved ones of
/// 2, 4 and 8 chunks; each without and with the all-to-all of one pass behind the other's computation.
[[nodiscard]] std::vector<Layout> first_orders_of(const Layout& split, const TrainingJob& job,
                                                  const Architecture& model);

/// All of them: every pipeline of the table, with 2, 4 and 8 chunks where it has chunks.
[[nodiscard]] std::vector<Layout> orders_of(const Layout& split, const TrainingJob& job, const Architecture& model);

// What a layout costs: a simulated step, and what it keeps in memory.

struct LayoutPoint {
  Layout layout;
  std::string refused{};      ///< why the scenario cannot be; nothing else is known then
  bool by_operators = false;  ///< else slot by slot, with GPUs alike
  bool fits = false;
  double step_ms = 0;  ///< 0 where it is not simulated, since not even the least that it keeps would fit
  double bubble_ms = 0, exposed_ms = 0;  ///< mean of the ranks: without a slot to run; communication and no computation
  KnownTime known{};                     ///< of the kernels
  double memory_gib = 0;                 ///< of the fullest GPU; at least, where it is not simulated
  double tokens_per_s = 0;               ///< of each GPU
  double mfu = 0;

  [[nodiscard]] bool is_scenario() const { return refused.empty(); }
  [[nodiscard]] bool ran() const { return step_ms > 0; }
  [[nodiscard]] double rest_ms() const { return step_ms - bubble_ms - exposed_ms; }
  /// What most of the step goes by, which it would gain most from: "computation", "bubble" or "communication".
  [[nodiscard]] std::string bound_by() const;
  /// Of the other two and what is exposed, the larger.
  [[nodiscard]] std::string largest_overhead() const { return bubble_ms > exposed_ms ? "bubble" : "communication"; }
};

/// US dollars a step, or milliseconds where the machine has no price: what layouts are compared by.
[[nodiscard]] double price_of(const LayoutPoint& point, const TrainingJob& job);

/// The layouts of a job. Thread-safe.
class LayoutPoints {
 public:
  /// REQUIRES: `job` outlives it.
  explicit LayoutPoints(const TrainingJob& job) : job_(job) {}

  /// Slot by slot (level: phase), with GPUs alike. `changes`: more of them, as after simulate --set.
  [[nodiscard]] LayoutPoint quick(const Layout& layout, const std::vector<std::string>& changes = {});
  /// Operator by operator, each rank at the pace of its slowest GPU; where that would be too many operators, by slots.
  [[nodiscard]] LayoutPoint confirmed(const Layout& layout);
  /// Steps that were simulated.
  [[nodiscard]] std::size_t size() { return known_.size(); }

 private:
  LayoutPoint simulated(const Layout& layout, const char* level, const std::vector<std::string>& changes);

  const TrainingJob& job_;
  Memo<std::string, LayoutPoint> known_;
};

}  // namespace moeline
