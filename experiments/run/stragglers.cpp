#include "experiments/run/stragglers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "experiments/run/rank_lanes.hpp"
#include "schedules/lowering/prepared_phases.hpp"
#include "timeline/intervals.hpp"

namespace moeline {
namespace {

std::vector<bool> slowest_ranks(const Program& program) {
  std::vector<bool> slowest(program.graph.size(), false);
  for (const Meeting& meeting : program.meetings) {
    if (meeting.wait != kNoTask) slowest[meeting.wait] = true;
  }
  return slowest;
}

// Of every task those that it waits for, one list behind the other.
class Predecessors {
 public:
  Predecessors(const TaskGraph& graph, const std::vector<bool>& left_out) : begin_(graph.size() + 1, 0) {
    for_each_edge(graph, left_out, [&](TaskId /*before*/, TaskId after) { ++begin_[after + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    before_.resize(begin_.back());
    std::vector<std::uint32_t> next = begin_;
    for_each_edge(graph, left_out, [&](TaskId before, TaskId after) { before_[next[after]++] = before; });
  }
  [[nodiscard]] std::span<const TaskId> operator[](TaskId task) const {
    return {before_.data() + begin_[task], before_.data() + begin_[task + 1]};
  }

 private:
  template <class Visit>
  static void for_each_edge(const TaskGraph& graph, const std::vector<bool>& left_out, const Visit& visit) {
    for (TaskId task = 0; task < graph.size(); ++task) {
      if (left_out[task]) continue;
      for (const EventId event : graph.successors(end_of(task))) {
        MOELINE_CHECK(is_start(event), graph.task_name(task));
        visit(task, task_of(event));
      }
    }
  }

  std::vector<std::uint32_t> begin_;
  std::vector<TaskId> before_;
};

bool computes(const TaskGraph& graph, TaskId task) { return graph.task_class(task).role == Role::compute; }

// `task` waits for `previous` alone, which nothing else waits for.
bool continues(const TaskGraph& graph, TaskId previous, TaskId task) {
  return graph.successors(end_of(previous)).size() == 1 && graph.label(previous).phase == graph.label(task).phase &&
         computes(graph, previous) && computes(graph, task);
}

}  // namespace

Chains chains_of(const Program& program) {
  const TaskGraph& graph = program.graph;
  const std::vector<bool> left_out = slowest_ranks(program);
  const Predecessors before(graph, left_out);
  Chains chains;
  chains.of_task.resize(graph.size());
  for (const EventId event : graph.topological_order()) {
    if (!is_start(event)) continue;
    const TaskId task = task_of(event);
    if (left_out[task]) continue;
    const std::span<const TaskId> waits_for = before[task];
    if (waits_for.size() == 1 && continues(graph, waits_for.front(), task)) {
      chains.of_task[task] = chains.of_task[waits_for.front()];
      chains.list[chains.of_task[task]].tasks.push_back(task);
      continue;
    }
    chains.of_task[task] = static_cast<std::uint32_t>(chains.list.size());
    Chain& chain = chains.list.emplace_back();
    chain.tasks.push_back(task);
    for (const TaskId each : waits_for) chain.before.push_back(chains.of_task[each]);
  }
  return chains;
}

namespace {

// Of random numbers: what kernels vary by, apart from what ranks do.
constexpr std::uint64_t kJitterStreams = 1 << 16, kScatterStreams = 1 << 17;

// Communication that does so until it ends: barriers' spins and normal transfers.
bool holds_sms(const TaskGraph& graph, TaskId task) {
  return graph.task_class(task).role == Role::communication && graph.task(task).hold == Hold::resident;
}

// From its release: gaps and waits for SMs count.
Interval interval_of(const Chain& chain, const TaskGraph& graph, const Timeline& timeline) {
  const TaskId first = chain.tasks.front();
  return {timeline.spans[first].ready - graph.task(first).delay, timeline.spans[chain.tasks.back()].end};
}

double us(const Interval& interval) { return to_us(interval.end - interval.start); }

bool forward(const Phase& phase) { return phase.name.ends_with("(F)"); }

// One draw of rows for each layer and direction.
int rows_index(const Phase& phase) { return 2 * static_cast<int>(phase.layer) + (forward(phase) ? 0 : 1); }

std::vector<Interval> times_with_sms_held(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<Interval> held;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (holds_sms(graph, task)) held.push_back({timeline.spans[task].start, timeline.spans[task].end});
  }
  return unite(std::move(held));
}

// Its elastic kernels yield to what communication holds; persistent ones were launched on fewer SMs anyway.
double lost_share(const Chain& chain, const Program& alone, double chain_us, double held_share) {
  double elastic_us = 0;
  for (const TaskId task : chain.tasks) {
    if (alone.graph.task(task).hold == Hold::elastic) elastic_us += to_us(alone.graph.task(task).solo);
  }
  return chain_us > 0 ? held_share * std::min(1.0, elastic_us / chain_us) : 0;
}

// Kernels jitter each for itself.
double jitter_us(const Chain& chain, const Program& alone) {
  double variance = 0;
  for (const TaskId task : chain.tasks) {
    variance += std::pow(alone.traits[task].jitter * to_us(alone.graph.task(task).solo), 2);
  }
  return std::sqrt(variance);
}

// What experts get by chance, all kernels on their rows get together.
double scatter_us(const Chain& chain, const Program& alone) {
  double us = 0;
  for (const TaskId task : chain.tasks) us += alone.traits[task].scatter * to_us(alone.graph.task(task).solo);
  return us;
}

// All its kernels that go by their load have the phase's.
TimesByLoad us_by_load(const Chain& chain, const Program& alone) {
  TimesByLoad sum;
  for (const TaskId task : chain.tasks) {
    const auto& [loads, longer] = alone.by_load[alone.traits[task].by_load];
    if (longer.empty()) continue;
    sum.loads = loads;
    sum.longer.resize(longer.size());
    const double us = to_us(alone.graph.task(task).solo);
    for (std::size_t i = 0; i < longer.size(); ++i) sum.longer[i] += longer[i] * us;
  }
  return sum;
}

std::uint64_t draws_of(const Phase& phase) {
  constexpr unsigned kLayerBits = 32, kMicroBatchBits = 16;
  return std::uint64_t{phase.layer} << kLayerBits | std::uint64_t{phase.micro_batch} << kMicroBatchBits | phase.piece;
}

double clocked_us(const Chain& chain, const Program& alone) {
  double us = 0;
  for (const TaskId task : chain.tasks) us += alone.traits[task].clocked * to_us(alone.graph.task(task).solo);
  return us;
}

}  // namespace

TimedChains timed_chains(const Setup& setup, const Program& alone, const Timeline& timeline, const Timeline& more_rows,
                         double step) {
  const TaskGraph& graph = alone.graph;
  const std::vector<Interval> held = times_with_sms_held(graph, timeline);
  const double held_share = transfer_sms(setup) / setup.machine.facts.sms;
  TimedChains timed;
  timed.chains = chains_of(alone);
  for (const Chain& chain : timed.chains.list) {
    const TaskId first = chain.tasks.front();
    const Interval span = interval_of(chain, graph, timeline);
    ChainTime time;
    time.us = us(span);
    time.computes = graph.task_class(first).role == Role::compute;
    time.holds_sms = holds_sms(graph, first);
    time.at = time.computes ? span.end : span.start;
    const Phase& phase = graph.phases()[graph.label(first).phase];
    time.rows_of = rows_index(phase);
    if (time.computes) {
      if (!more_rows.spans.empty()) time.rows_us = (us(interval_of(chain, graph, more_rows)) - time.us) / step;
      time.others_rows = setup.others_rows(forward(phase), static_cast<int>(phase.layer));
      time.clocked_us = clocked_us(chain, alone);
      if (setup.scenario.jitter == Jitter::measured) time.jitter_us = jitter_us(chain, alone);
      time.scatter_us = scatter_us(chain, alone);
      if (setup.scenario.parallelism.moe_tp == 1) {  // nobody has it in common: one normal number does for both
        time.jitter_us = std::hypot(time.jitter_us, std::exchange(time.scatter_us, 0));
      }
      time.by_load = us_by_load(chain, alone);
      time.draws_of = draws_of(phase);
      time.lost_share = lost_share(chain, alone, time.us, held_share);
      time.us -= time.lost_share * to_us(overlap({span}, held));
    }
    timed.times.push_back(time);
  }
  for (std::size_t i = 0; i < alone.meetings.size(); ++i) {
    const Meeting& meeting = alone.meetings[i];
    timed.times[timed.chains.of_task[meeting.arrives]].arrives = i;
    if (!meeting.is_barrier()) timed.times[timed.chains.of_task[meeting.leaves]].leaves = i;
  }
  timed.order.resize(timed.times.size());
  std::iota(timed.order.begin(), timed.order.end(), 0U);
  std::stable_sort(timed.order.begin(), timed.order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return timed.times[a].at < timed.times[b].at; });
  return timed;
}

StragglerDraws::StragglerDraws(const Setup& setup, const Program& alone, const TimedChains& chains,
                               const std::vector<double>& slowness)
    : setup_(setup),
      alone_(alone),
      chains_(chains),
      ranks_(slowness.size()),
      sharing_(static_cast<std::size_t>(std::max(1, setup.scenario.parallelism.moe_tp))),
      first_is_drawn_(setup.scenario.phase() != WorkloadPhase::train),
      slower_(slowness),
      all_arrived_(alone.meetings.size()),
      nobody_(ranks_),
      starts_(ranks_),
      times_(ranks_),
      loads_((ranks_ + sharing_ - 1) / sharing_),
      ends_(std::make_unique_for_overwrite<double[]>(chains.times.size() * ranks_)) {
  for (double& each : slower_) each -= 1;
  scatters_rows_ = std::ranges::any_of(chains.times, [](const ChainTime& chain) { return chain.scatter_us > 0; });
  std::vector<bool> leads(chains.times.size(), false);
  for (const Chain& chain : chains.chains.list) {
    for (const std::uint32_t before : chain.before) leads[before] = true;
  }
  for (std::uint32_t number = 0; number < leads.size(); ++number) {
    if (!leads[number]) last_.push_back(number);
  }
}

void StragglerDraws::run(std::uint64_t draw) {
  const auto seed = static_cast<std::uint64_t>(setup_.scenario.seed);
  random_ = Random(seed, draw);
  draw_ = draw;
  jitters_ = normals(seed, kJitterStreams + draw, chains_.times.size() * ranks_);
  if (scatters_rows_) scatters_ = normals(seed, kScatterStreams + draw, chains_.times.size() * ranks_);
  rows_.clear();
  held_.clear();
  for (std::vector<double>& arrived : all_arrived_) arrived.clear();
  for (const std::uint32_t number : chains_.order) pass(number);
}

void StragglerDraws::pass(std::uint32_t number) {
  const ChainTime& chain = chains_.times[number];
  const double* starts = starts_of(number);
  double* ends = ends_of(number);
  if (chain.computes) {
    draw_times(number);
    sum_of_each(starts, times_.data(), ranks_, ends);
  } else {
    sum_of_each(starts, chain.us, ranks_, ends);
  }
  if (chain.lost_share > 0) lose_to_held(chain, starts, ends);
  if (chain.arrives != kNoMeeting) meet(chain, starts, ends);
  if (chain.holds_sms) held_.push_back({{starts, starts + ranks_}, {ends, ends + ranks_}});
}

// Most chains follow one other, at once: where that ends they start, without a copy.
const double* StragglerDraws::starts_of(std::uint32_t number) {
  const ChainTime& chain = chains_.times[number];
  const auto& before = chains_.chains.list[number].before;
  const double* starts = before.empty() ? nobody_.data() : ends_of(before.front());
  for (std::size_t i = 1; i < before.size(); ++i) {
    later_of_each(starts, ends_of(before[i]), ranks_, starts_.data());
    starts = starts_.data();
  }
  if (chain.leaves == kNoMeeting) return starts;
  wait_for_all(chain.leaves, starts, starts_.data());
  return starts_.data();
}

void StragglerDraws::draw_times(std::uint32_t number) {
  const ChainTime& chain = chains_.times[number];
  const double* jitters = jitters_->data() + number * ranks_;
  weighted_of_each(chain.us, chain.clocked_us, slower_.data(), chain.jitter_us, jitters, ranks_, times_.data());
  if (chain.scatter_us > 0) scatter_times(number);
  if (chain.by_load.loads) load_times(chain);
  if (!first_is_drawn_) times_[0] = chain.us;
  if (chain.rows_us != 0) {
    const std::vector<double>& rows_of = rows(chain.rows_of);
    for (std::size_t rank = 1; rank < ranks_; ++rank) {
      times_[rank] += chain.rows_us * (chain.others_rows * (1 + rows_of[rank / sharing_ * sharing_]) - 1);
    }
  }
  later_of_each(times_.data(), 0.0, ranks_, times_.data());
}

void StragglerDraws::scatter_times(std::uint32_t number) {
  const double* scatters = scatters_->data() + number * ranks_;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    times_[rank] += chains_.times[number].scatter_us * scatters[rank / sharing_ * sharing_];
  }
}

void StragglerDraws::load_times(const ChainTime& chain) {
  const auto seed = static_cast<std::uint64_t>(setup_.scenario.seed);
  chain.by_load.loads->draw({scrambled(seed << 32U ^ draw_), chain.draws_of}, loads_);
  for (std::size_t rank = 0; rank < ranks_; ++rank) times_[rank] += chain.by_load.longer[loads_[rank / sharing_]];
}

void StragglerDraws::lose_to_held(const ChainTime& chain, const double* starts, double* ends) const {
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (int i = 0; i < 2; ++i) {  // what it loses makes it meet more
      ends[rank] = starts[rank] + times_[rank] + chain.lost_share * held_us(rank, starts[rank], ends[rank]);
    }
  }
}

void StragglerDraws::meet(const ChainTime& chain, const double* starts, double* ends) {
  const Meeting& meeting = alone_.meetings[chain.arrives];
  const double* arrivals = meeting.is_barrier() ? starts : ends;
  const std::size_t group = group_of(meeting);
  std::vector<double>& arrived = all_arrived_[chain.arrives];
  arrived.clear();
  for (std::size_t first = 0; first < ranks_; first += group) {
    arrived.push_back(latest(arrivals + first, std::min(group, ranks_ - first)));
  }
  if (meeting.is_barrier()) wait_for_all(chain.arrives, ends, ends);
}

void StragglerDraws::wait_for_all(std::size_t meeting, const double* from, double* until) const {
  const std::vector<double>& arrived = all_arrived_[meeting];
  MOELINE_CHECK(!arrived.empty(), "ranks leave a meeting after they came to it");
  const std::size_t group = group_of(alone_.meetings[meeting]);
  for (std::size_t first = 0, number = 0; first < ranks_; first += group, ++number) {
    later_of_each(from + first, arrived[number], std::min(group, ranks_ - first), until + first);
  }
}

std::size_t StragglerDraws::group_of(const Meeting& meeting) const {
  return meeting.ranks > 0 ? std::min(static_cast<std::size_t>(meeting.ranks), ranks_) : ranks_;
}

// The latest ones are last, and begin and end one after the other on each rank.
double StragglerDraws::held_us(std::size_t rank, double from, double until) const {
  double sum = 0;
  for (auto held = held_.rbegin(); held != held_.rend() && held->until[rank] > from; ++held) {
    sum += std::max(0.0, std::min(until, held->until[rank]) - std::max(from, held->from[rank]));
  }
  return sum;
}

const std::vector<double>& StragglerDraws::rows(int index) {
  const auto [found, is_new] = rows_.try_emplace(index, ranks_);
  if (is_new) {
    for (double& each : found->second) each = setup_.scenario.routing.rows_spread * random_.normal();
  }
  return found->second;
}

double StragglerDraws::end_us() const {
  double end = 0;
  for (const std::uint32_t number : last_) end = std::max(end, latest(ends_of(number), ranks_));
  return end;
}

double StragglerDraws::wait_us(const Meeting& meeting) const {
  if (meeting.work == kNoTask) return 0;
  const double* ends = ends_of(chains_.chains.of_task[meeting.work]);
  return latest(ends, group_of(meeting)) - ends[0];
}

}  // namespace moeline
