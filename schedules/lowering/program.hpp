// A program: the tasks of all simulated ranks in one graph, and what its prices rest on.
#pragma once

#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "graph/task_graph.hpp"
#include "hardware/power.hpp"
#include "hardware/price.hpp"
#include "routing/drawn_loads.hpp"
#include "schedules/lowering/block_release.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// What stands for the gap between two kernels: a CUDA graph's own where it was measured, else an eager stream's.
[[nodiscard]] Constant kernel_gap_of(const Setup& setup);

/// How one family was priced, summed over its kernels.
struct ProvenanceUse {
  Family family = Family::small;
  Provenance provenance = Provenance::interpolated;
  ProvenanceNote note;
  std::string kernel_set;  ///< whose measurements; not the scenario's own where borrowed
  double kernels = 0;
  double solo_us = 0;
  double corrected_us = 0;  ///< of these, with a correction of the family's curve
};

/// Adds `times` as many of the same kernels to the entry of their family, provenance and set, or makes one.
void add_use(const ProvenanceUse& use, double times, std::vector<ProvenanceUse>& uses);

/// What there is to know of a kernel beside its task: how its time varies, and what it draws.
struct KernelTraits {
  double jitter = 0;   ///< from one execution to the next, standard deviation over the mean
  double scatter = 0;  ///< the same by the rows that experts happen to get; 0 where those are drawn
  double clocked = 0;  ///< share of it that goes by the SMs' clock, which is what a slower GPU takes longer for
  KernelPower power{};
  std::uint32_t by_load = 0;  ///< what it takes by what its experts get, in Program::by_load; 0: by none

  /// Its time on a GPU so much slower than the mean one, over that on the mean one.
  [[nodiscard]] double lengthened(double slowness) const { return 1 + clocked * (slowness - 1); }
};

/// What of a step a kernel belongs to.
enum class ModelPass { forward, backward, recomputation, neither };
inline constexpr std::size_t kModelPasses = static_cast<std::size_t>(ModelPass::neither) + 1;

/// What a kernel does for the model.
struct KernelWork {
  std::string module;  ///< moe/module_names.hpp
  ModelPass pass = ModelPass::forward;
  double flops = 0;       ///< padding and recomputation left out
  double recomputed = 0;  ///< FLOPs of forward work that the backward pass repeats
  BoundBy bound_by = BoundBy::unknown;
  Operator op{};  ///< that was priced, under these conditions
  PriceConditions conditions{};
  double solo_us = 0;     ///< that it was charged: of drawn loads the mean; tasks of a slow GPU take longer
  std::size_t parts = 1;  ///< tasks, of which each releases what waits for its part
};

/// Of an operator of a phase ("attn(B)"); what it is bound by needs its price.
[[nodiscard]] KernelWork work_of(const std::string& phase, const Operator& op);

/// Of a task the kernel that it executes, an index into Program::kernels.
struct Execution {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();  ///< host work
  std::uint32_t kernel = kNone;
  bool repeats = false;  ///< forward work of a layer once more, in its backward pass
  float share = 1;       ///< of the kernel: below 1, the task is one of the parts that it is released in
};

/// Where a rank meets the others: a barrier, a message that it sends and one that it receives, or a collective.
struct Meeting {
  TaskId arrives = kNoTask;  ///< the spin of a barrier, the wire, or the kernel before a collective
  TaskId leaves = kNoTask;   ///< the same spin, the kernel that receives, or the collective
  TaskId work = kNoTask;     ///< the end of the computation before it
  TaskId wait = kNoTask;     ///< stands for the slowest rank, where that is not simulated
  std::uint32_t phase = 0;   ///< of the graph
  int ranks = 0;             ///< that meet, of consecutive numbers; 0: all that are simulated
  [[nodiscard]] bool is_barrier() const { return arrives == leaves; }
};

/// What the host does while the kernels run.
enum class Host {
  absent,    ///< nothing that they wait for, but for reading counts
  launches,  ///< launches them one by one, and reads counts beside that
  blocks,    ///< the same, and launches nothing while it waits for counts
};
[[nodiscard]] Host host_of(const Scenario& scenario);

/// By how much of its mean time a kernel takes longer, for each of the loads that its experts typically get.
struct TimesByLoad {
  std::shared_ptr<const TypicalLoads> loads{};
  std::vector<double> longer{};
};

/// Ready to run. Numbers are of one rank and step, on average over all.
struct Program {
  TaskGraph graph;
  int ranks = 1;
  double steps = 1;  ///< that follow each other
  std::vector<ProvenanceUse> provenance{};
  double model_flops = 0;   ///< without recomputation and rows that no request has; those that fill tiles count
  double lumped_us = 0;     ///< solo time of kernels with a fixed cost
  ConstantSet constants{};  ///< of the kernel set that entered
  double gaps_us = 0;       ///< launch gaps, summed over the kernels
  double waits_us = 0;      ///< expected waits for the slowest rank, summed over the transfers
  Fold fold{};
  std::vector<KernelTraits> traits{};  ///< by task, of rank 0, whose tasks come first
  std::vector<Meeting> meetings{};     ///< of the ranks that stand for others, in the order of the program
  std::vector<KernelWork> kernels{};
  std::vector<Execution> executions{};  ///< by task; those behind the last one are host work
  std::vector<TimesByLoad> by_load{};   ///< the first is empty

  [[nodiscard]] Execution execution_of(TaskId task) const {
    return task < executions.size() ? executions[task] : Execution{};
  }
};

/// The slowest rank's work ends so much later than this one's. Nothing where the meeting waits for nobody.
void add_wait(Program& program, const Meeting& meeting, double wait_us);

/// How the kernels of a phase are run.
struct PhaseOptions {
  bool overlapped = false;   ///< beside communication: persistent kernels leave it its SMs free
  bool side_stream = false;  ///< independent kernels alternate between the compute and the side stream
  bool meetings = false;     ///< collectives start once all their ranks have come
  int sms = 0;               ///< of a transfer, or of persistent kernels that are overlapped; 0: by comm.num_sms
  bool leaves_sms = true;    ///< kernels beside a transfer run on the SMs that it leaves free; false: on all SMs
  bool released = false;     ///< of experts and the combine behind them: see block_release.hpp
};

/// Of the kernels of a low-latency transfer: behind the one that issues, and the wire.
inline constexpr std::size_t kReceive = 2;

/// Resources of one rank, in the order in which each has them; the last two where the scenario offloads.
enum class RankResource : ResourceId { sms, hbm, nvlink_out, nvlink_in, nic_out, nic_in, host_out, host_in };

struct PreparedKernel {
  Task task;                  ///< its pool is filled in for the rank it runs on
  Label label;                ///< without stream and phase
  std::vector<Usage> usages;  ///< of a RankResource
  Family family = Family::small;
  Stage stage = Stage::whole;
  bool parallel = false;
  bool beside = false;
  bool reads_counts = false;
  bool launched_before = false;  ///< by a host that was early, or in the graph of the kernel before
  Time host{};                   ///< that a host takes before it has launched it
  NameId module = kNoName;       ///< for which the host does so
  int awaits = 0;                ///< as Operator has them
  bool computes = false;
  int meets = 0;              ///< ranks, all of which start it together; 0: it is no such kernel
  std::vector<Time> parts{};  ///< what its blocks take, one release after the other; empty: it is released as a whole
  std::uint32_t work = 0;     ///< of Program::kernels
  KernelTraits traits;
};

/// The kernels of a phase, priced once and executed as often as there are equal ones.
struct PreparedPhase {
  std::string name;
  bool side_stream = false;
  std::vector<PreparedKernel> kernels;
  std::vector<ProvenanceUse> uses;
  double model_flops = 0;
  double lumped_us = 0;
  int executions = 0;
  int repetitions = 0;  ///< of these, recomputations
};

/// The same operators by each of the loads that experts typically get; empty: chance has no part in them.
struct OperatorsByLoad {
  std::shared_ptr<const TypicalLoads> loads{};
  std::vector<std::vector<Operator>> ops{};
};

/// A program being written.
class ProgramDraft {
 public:
  /// `host`: what it does meanwhile. REQUIRES: `setup` outlives it.
  explicit ProgramDraft(const Setup& setup, Host host = Host::absent) : setup_(setup), host_(host) {}

  [[nodiscard]] const Setup& setup() const { return setup_; }
  [[nodiscard]] Host host() const { return host_; }
  [[nodiscard]] TaskGraphDraft& graph() { return graph_; }

  /// The reference stays valid. Prices are averaged over the loads.
  PreparedPhase& prepare(const std::string& name, std::vector<Operator> ops, const PhaseOptions& options,
                         const OperatorsByLoad& by_load = {});
  [[nodiscard]] const KernelWork& work(const PreparedKernel& kernel) const { return kernels_[kernel.work]; }
  /// The kernel goes in so many equal parts; or in unequal ones, as block_release.hpp has them, of which each has
  /// `part` to do.
  void release(PreparedKernel& kernel, int parts);
  void release(PreparedKernel& kernel, int parts, const Operator& part, Once once);
  /// A constant of the kernel set that enters; 0 where neither the set nor one it borrows from knows it.
  double constant(Constant constant);
  /// The same of one of the host's, on the machine's host.
  double host_constant_us(Constant constant);
  /// Of the task added last.
  void note(const KernelTraits& traits);
  void note(Execution execution);
  void add_gap(Time gap) { gaps_us_ += to_us(gap); }
  void add_wait(double us) { waits_us_ += us; }

  /// `steps`: that were written, one after the other; numbers are of one.
  [[nodiscard]] Program finish(int ranks, std::vector<Meeting> meetings, double steps = 1) &&;

 private:
  void release(PreparedKernel& kernel, std::vector<Time> parts);
  [[nodiscard]] PreparedKernel prepare_kernel(const Operator& op, const Price& price, bool captured);
  [[nodiscard]] double gap_us(const std::string& family, bool captured);
  /// What the host takes for each kernel of a phase, as it launches kernels or blocks; nothing where it is absent.
  [[nodiscard]] std::vector<double> host_times_us(const std::string& phase, const std::vector<Operator>& ops,
                                                  const std::vector<bool>& captured);
  [[nodiscard]] PriceConditions conditions_of(const Operator& op, const PhaseOptions& options) const;
  [[nodiscard]] std::shared_ptr<const Price> price_of(const Operator& op, const PriceConditions& conditions);
  /// Of the operator at this place, on average over the loads; notes what it takes by each in by_load_.
  [[nodiscard]] std::shared_ptr<const Price> price_by_chance(const Operator& op, const OperatorsByLoad& by_load,
                                                             std::size_t place, const PriceConditions& conditions);

  const Setup& setup_;
  Host host_;
  TaskGraphDraft graph_;
  std::deque<PreparedPhase> phases_;
  std::vector<KernelTraits> traits_;
  std::vector<KernelWork> kernels_;
  std::vector<Execution> executions_;
  std::vector<TimesByLoad> by_load_{1};
  ConstantSet constants_;
  double gaps_us_ = 0;
  double waits_us_ = 0;
};

}  // namespace moeline
