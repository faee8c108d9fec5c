// From phases to tasks: what every schedule needs to put the kernels of a phase onto the streams of a rank.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "graph/task_graph.hpp"
#include "hardware/price.hpp"
#include "schedules/scenario.hpp"

namespace moeline {

enum class StreamName : std::uint8_t { compute, communication, side, host };

/// Where and for whom a phase is executed.
struct Place {
  int layer = 0;
  int micro_batch = 0;
  StreamName stream = StreamName::compute;
};

/// What a family counts as in the metrics: attention (the core alone), gemm, grouped_gemm, memory, small, dispatch, ...
[[nodiscard]] const char* class_name(Family family);

/// The ends of a phase that edges attach to.
struct PhaseTasks {
  TaskId first = kNoTask;
  TaskId last = kNoTask;
  TaskId notify = kNoTask;  ///< the barrier before a normal transfer
  TaskId wire = kNoTask;    ///< of a low-latency transfer
  std::uint32_t phase = 0;
  double wait_us = 0;  ///< from the end of the work before a transfer until the slowest rank has ended its own
};

/// How one family was priced, summed over its kernels.
struct ProvenanceUse {
  Family family = Family::small;
  Provenance provenance = Provenance::interpolated;
  ProvenanceNote note;
  std::string kernel_set;  ///< whose measurements; not the scenario's own where borrowed
  int kernels = 0;
  double solo_us = 0;
};

/// One rank's program, ready to run.
struct Program {
  TaskGraph graph;
  std::vector<ProvenanceUse> provenance;
  double model_flops = 0;  ///< recomputation left out; rows padded to whole tiles count
  double lumped_us = 0;    ///< solo time of kernels with a fixed cost
  ConstantSet constants;   ///< of the kernel set that entered
  double gaps_us = 0;      ///< launch gaps, summed over the kernels
  double waits_us = 0;     ///< expected waits for the slowest rank, summed over the transfers
};

struct PreparedKernel {
  Task task;
  Label label;
  std::vector<Usage> usages;
  Family family = Family::small;
  Stage stage = Stage::whole;
  bool parallel = false;
};

/// The kernels of a phase, priced once and executed as often as there are equal layers.
struct PreparedPhase {
  std::string name;
  std::vector<PreparedKernel> kernels;
  std::vector<ProvenanceUse> uses;
  double model_flops = 0;
  double lumped_us = 0;
  double variance_us2 = 0;  ///< of the time of its compute kernels, by the set's jitter
  double wait_us = 0;       ///< of a transfer: expected wait for the slowest rank
};

/// What stands for the gap between two kernels: a CUDA graph's own where it was measured, else an eager stream's.
[[nodiscard]] Constant kernel_gap_of(const Setup& setup);

/// Kernels of a stream run in the order in which they are appended, a launch gap apart.
class RankProgram {
 public:
  struct Options {
    bool overlapped = false;  ///< persistent kernels leave the communication SMs free
    bool eager = false;       ///< the host launches kernel by kernel
    std::vector<std::string> side_phases{};
  };
  /// REQUIRES: `setup` outlives it.
  RankProgram(const Setup& setup, Options options);

  /// `wait_us`: of a transfer, how much later than this rank the slowest one is expected to be ready for it.
  [[nodiscard]] PreparedPhase prepare(const std::string& name, const std::vector<Operator>& ops, double wait_us = 0);

  /// Appends the kernels of a phase. Normal dispatch waits for the host to read the counts that notify brought.
  PhaseTasks append(const PreparedPhase& phase, const Place& place);
  /// The two halves of a low-latency transfer: the kernel that issues it, with the wire behind it, and the one that
  /// receives.
  PhaseTasks append_issue(const PreparedPhase& phase, const Place& place);
  void append_receive(const PreparedPhase& phase, const Place& place, PhaseTasks& issued);

  void order(const PhaseTasks& before, const PhaseTasks& after) { draft_.start_after_end(before.last, after.first); }
  /// The order of a dependency. A transfer after computation also waits for the slowest rank: its barrier ends, or its
  /// messages are there, only when that has got as far.
  void connect(const PhaseDependency& dependency, const PhaseTasks& before, const PhaseTasks& after);
  /// The host launches `after` only once it has read the counts of `dispatch`.
  void host_edge(const PhaseTasks& dispatch, const PhaseTasks& after);

  [[nodiscard]] Program finish() &&;

 private:
  PhaseTasks begin(const PreparedPhase& phase, const Place& place);
  TaskId add_kernel(const PreparedKernel& kernel, const PhaseTasks& phase, const Place& place);
  void add_parallel(std::vector<PreparedKernel>::const_iterator first, std::vector<PreparedKernel>::const_iterator last,
                    const PhaseTasks& phase, const Place& place);
  [[nodiscard]] PreparedKernel prepare_kernel(const Operator& op, const Price& price);
  [[nodiscard]] Price price_of(const Operator& op);
  double constant(Constant constant);
  TaskId add_host_task(const char* name, Time duration, std::uint32_t phase);
  void wait_for_host(const char* work, Constant duration, const PhaseTasks& dispatch, TaskId task);
  void launch_from_host(TaskId kernel, std::uint32_t phase);
  void account(const PreparedPhase& phase);
  [[nodiscard]] std::vector<Usage> usages_of(const Price& price) const;

  const Setup& setup_;
  Options options_;
  TaskGraphDraft draft_;
  ResourceId sms_, hbm_, nvlink_out_, nvlink_in_, nic_out_, nic_in_;
  std::array<TaskId, 4> last_ = {kNoTask, kNoTask, kNoTask, kNoTask};  // by stream
  std::map<std::tuple<Family, Provenance, std::string>, ProvenanceUse> provenance_;
  double model_flops_ = 0;
  double lumped_us_ = 0;
  ConstantSet constants_;
  double gaps_us_ = 0;
  double waits_us_ = 0;
};

}  // namespace moeline
