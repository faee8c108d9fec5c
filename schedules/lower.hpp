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

/// The ends of a phase that edges attach to.
struct PhaseTasks {
  TaskId first = 0;
  TaskId last = 0;
  TaskId notify = 0;  ///< the barrier before a transfer; of other phases meaningless
  std::uint32_t phase = 0;
};
using LayerPhases = std::map<std::string, PhaseTasks>;

/// How one family was priced, summed over its kernels.
struct ProvenanceUse {
  Family family = Family::small;
  Provenance provenance = Provenance::interpolated;
  int kernels = 0;
  double solo_us = 0;
};

/// One rank's program, ready to run.
struct Program {
  TaskGraph graph;
  std::vector<ProvenanceUse> provenance;
  double model_flops = 0;  ///< recomputation left out; rows padded to whole tiles count
  double lumped_us = 0;    ///< solo time of kernels with a fixed cost
};

/// Kernels of a stream run in the order in which they are appended, a launch gap apart.
class RankProgram {
 public:
  struct Options {
    bool overlapped = false;  ///< persistent kernels leave the communication SMs free
    std::vector<std::string> side_phases;
  };
  RankProgram(const Setup& setup, Options options);

  /// Appends the kernels of a phase. Dispatch waits for the host to read the counts that notify brought.
  PhaseTasks append(const std::string& phase, int layer, StreamName stream);
  void order(const PhaseTasks& before, const PhaseTasks& after) { draft_.start_after_end(before.last, after.first); }
  /// The host launches `after` only once it has read the counts of `dispatch`.
  void host_edge(const PhaseTasks& dispatch, const PhaseTasks& after);
  /// The model's own dependencies within a layer and from the layer before.
  void data_edges(const LayerPhases& previous, const LayerPhases& now);

  [[nodiscard]] Program finish() &&;

 private:
  TaskId add_kernel(const Operator& op, std::uint32_t phase, StreamName stream);
  [[nodiscard]] Price price_of(const Operator& op) const;
  TaskId add_host_task(const char* name, Time duration, std::uint32_t phase);
  void wait_for_host(const char* work, Constant duration, const PhaseTasks& dispatch, TaskId task);
  void append_parallel(const std::vector<Operator>& ops, std::uint32_t phase);
  void account(const Operator& op, const Price& price);
  [[nodiscard]] std::vector<Usage> usages_of(const Price& price) const;

  static constexpr TaskId kNone = ~TaskId{0};
  const Setup& setup_;
  Options options_;
  TaskGraphDraft draft_;
  ResourceId sms_, hbm_, nvlink_out_, nvlink_in_, nic_out_, nic_in_;
  std::array<TaskId, 4> last_ = {kNone, kNone, kNone, kNone};  // by stream
  std::map<std::pair<Family, Provenance>, ProvenanceUse> provenance_;
  double model_flops_ = 0;
  double lumped_us_ = 0;
};

}  // namespace moeline
