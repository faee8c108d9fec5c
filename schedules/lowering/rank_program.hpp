// From phases to tasks: what every schedule needs to put the kernels of a phase onto the streams of a rank.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "moe/rank_work.hpp"
#include "schedules/lowering/program.hpp"

namespace moeline {

enum class StreamName : std::uint8_t {
  compute,
  communication,
  side,
  host,
  collectives,      ///< gradients and parameters
  parameters,       ///< of blocks to come, where replicas split them
  keys,             ///< and values, round the ring of ranks that share sequences
  tensor_parallel,  ///< what tensor parallel ranks exchange beside computation
  to_host,          ///< activations
  from_host,
  states_to_host,  ///< of the optimizer
  states_from_host,
  activations_to_next,  ///< sends of a pipeline, by rank they go to or come from
  activations_to_previous,
  gradients_to_next,
  gradients_to_previous,
  activations_from_next,
  activations_from_previous,
  gradients_from_next,
  gradients_from_previous,
  caches,  ///< of other replicas, over the NIC
};
inline constexpr std::size_t kStreamNames = 21;

/// Transfers run on the communication stream, all else on the compute stream, where no plan says otherwise.
[[nodiscard]] inline StreamName stream_of(const std::string& phase) {
  return is_transfer(phase) ? StreamName::communication : StreamName::compute;
}

/// Where and for whom a phase is executed.
struct Place {
  int layer = 0;
  int micro_batch = 0;
  StreamName stream = StreamName::compute;
  bool repeats = false;  ///< full recomputation: a forward phase once more
  Piece piece{};

  /// The same on another stream.
  [[nodiscard]] Place on(StreamName other) const {
    Place place = *this;
    place.stream = other;
    return place;
  }
};

/// The ends of a phase that edges attach to.
struct PhaseTasks {
  TaskId first = kNoTask;
  TaskId last = kNoTask;
  TaskId notify = kNoTask;       ///< the barrier before a normal transfer
  TaskId wire = kNoTask;         ///< of a low-latency transfer
  bool begins_together = false;  ///< its first kernel is a collective
  TaskId together = kNoTask;     ///< else its first collective, where it has one
  std::size_t meeting = 0;       ///< of a transfer, among the rank's
  std::uint32_t phase = 0;
  int repeats = 1;               ///< of its layer: so many it stands for
  int pieces = 1;                ///< of which it is one
  Time lead{};                   ///< of a normal transfer: from its start to that of its barrier
  std::vector<TaskId> blocks{};  ///< parts of a GEMM, and of the kernel that sends what each has finished
};

/// One rank's part of a program. Kernels of a stream run in the order in which they are appended, a launch gap apart.
class RankProgram {
 public:
  /// REQUIRES: `program` outlives it. Where all ranks are simulated, kernels' times are drawn from the scenario's seed
  /// and the rank; else they are their means.
  RankProgram(ProgramDraft& program, int rank);

  [[nodiscard]] int rank() const { return rank_; }
  /// Kernels wait for a host that launches them one by one.
  [[nodiscard]] bool has_host() const { return program_.host() != Host::absent; }

  /// Appends the kernels of a phase. Normal dispatch waits for the host to read the counts that notify brought.
  PhaseTasks append(PreparedPhase& phase, const Place& place);
  /// The two halves of a low-latency transfer: the kernel that issues it, with the wire behind it, and the one that
  /// receives, with the collectives behind that.
  PhaseTasks append_issue(PreparedPhase& phase, const Place& place);
  void append_receive(const PreparedPhase& phase, const Place& place, const std::vector<PhaseTasks*>& issued);

  /// A phase of one task that takes a given time and nothing else.
  PhaseTasks append_time(const std::string& phase, const std::string& name, Time time, const Place& place);

  /// Block by block, where both are released so.
  void order(const PhaseTasks& before, const PhaseTasks& after);
  /// `after`, a transfer, ends no earlier than `wait_us` after the work of `before`: where the slowest rank is not
  /// simulated, a barrier ends, or messages are there, only when that has got as far. add_wait adds to it later.
  void meet(const PhaseTasks& before, const PhaseTasks& after, double wait_us = 0);
  /// What is appended from now on starts once all before it has ended, whatever its stream. Edges may be added to the
  /// task that this returns.
  TaskId join_streams();
  /// A point that nothing before it leads to yet; `first` of both phases start after it.
  TaskId gate(const PhaseTasks& one, const PhaseTasks& other);
  /// An instant so long after the start of a phase.
  TaskId after_start(const PhaseTasks& phase, Time time);
  /// The phase ends no earlier than so long after `task`.
  void end_after(const PhaseTasks& phase, TaskId task, Time time);
  /// The end of all computation appended so far. Nothing waits for it by itself.
  TaskId computed();
  /// The host launches `after` only once it has read the counts that the barrier of `dispatch` brought.
  void host_edge(const PhaseTasks& dispatch, const PhaseTasks& after);

  /// The label of a task of this rank.
  [[nodiscard]] Label label(Label label, StreamName stream, std::uint32_t phase);
  /// In the order of the program, which is that of all ranks.
  [[nodiscard]] const std::vector<Meeting>& meetings() const { return meetings_; }

 private:
  [[nodiscard]] TaskGraphDraft& graph() { return program_.graph(); }
  PhaseTasks begin(const std::string& phase, const Place& place);
  TaskId add_meeting(const PreparedKernel& kernel, PhaseTasks& tasks, const Place& place);
  TaskId add_beside(const PreparedKernel& kernel, const PhaseTasks& phase, const Place& place);
  TaskId add_kernel(const PreparedKernel& kernel, const PhaseTasks& phase, const Place& place, float share = 1);
  std::vector<TaskId> add_parts(const PreparedKernel& kernel, const PhaseTasks& phase, const Place& place);
  void add_parallel(std::vector<PreparedKernel>::const_iterator first, std::vector<PreparedKernel>::const_iterator last,
                    const PhaseTasks& phase, const Place& place);
  [[nodiscard]] Time drawn(const PreparedKernel& kernel);
  [[nodiscard]] Label host_label(const char* name, std::uint32_t phase);
  TaskId add_host_task(const char* name, Time duration, std::uint32_t phase, NameId module = kNoName);
  struct HostWork {
    const char* name;
    Constant duration;
    std::uint32_t phase;
  };
  /// `task` starts once the host has done its work, which it can when `counted` has ended.
  void wait_for_host(const HostWork& work, TaskId counted, TaskId task);
  void launch_from_host(TaskId task, const PreparedKernel& kernel, std::uint32_t phase);

  ProgramDraft& program_;
  int rank_;
  bool jitter_;
  double slowness_;
  Random random_;
  ResourceId first_resource_ = 0;
  std::array<std::uint16_t, kStreamNames> streams_;  // of the graph; those that nobody has used are not there yet
  std::array<TaskId, kStreamNames> last_;
  std::vector<Meeting> meetings_;
  std::vector<Usage> usages_;  // of the kernel that is being added
};

// One program for all the ranks that a scenario simulates.

/// Appends the same step on each simulated rank, joins the ranks where they meet, and freezes the graph. An order that
/// cannot run is the fault of the overlap plan in `plan_file`.
[[nodiscard]] Program on_every_rank(ProgramDraft&& program, const std::string& plan_file,
                                    const std::function<void(RankProgram&)>& append);

}  // namespace moeline
