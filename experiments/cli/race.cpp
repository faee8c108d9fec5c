#include "experiments/cli/race.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "timeline/intervals.hpp"

namespace moeline {
namespace {

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

double deviation_us(const Chain& chain, const Program& alone) {
  double variance = 0;
  for (const TaskId task : chain.tasks)
    variance += std::pow(alone.jitters[task] * to_us(alone.graph.task(task).solo), 2);
  return std::sqrt(variance);
}

}  // namespace

Course course_of(const Setup& setup, const Program& alone, const Timeline& timeline, const Timeline& more_rows,
                 double step) {
  const TaskGraph& graph = alone.graph;
  const std::vector<Interval> held = times_with_sms_held(graph, timeline);
  const double held_share = setup.scenario.comm.num_sms / setup.machine.facts.sms;
  Course course;
  course.chains = chains_of(graph);
  for (const Chain& chain : course.chains.list) {
    const TaskId first = chain.tasks.front();
    const Interval span = interval_of(chain, graph, timeline);
    Leg leg;
    leg.us = us(span);
    leg.computes = graph.task_class(first).role == Role::compute;
    leg.holds_sms = holds_sms(graph, first);
    leg.at = leg.computes ? span.end : span.start;
    const Phase& phase = graph.phases()[graph.label(first).phase];
    leg.rows_of = rows_index(phase);
    if (leg.computes) {
      if (!more_rows.spans.empty()) leg.rows_us = (us(interval_of(chain, graph, more_rows)) - leg.us) / step;
      leg.others_rows = setup.others_rows(forward(phase), static_cast<int>(phase.layer));
      if (setup.scenario.jitter == "measured") leg.deviation_us = deviation_us(chain, alone);
      leg.lost_share = lost_share(chain, alone, leg.us, held_share);
      leg.us -= leg.lost_share * to_us(overlap({span}, held));
    }
    course.legs.push_back(leg);
  }
  course.order.resize(course.legs.size());
  std::iota(course.order.begin(), course.order.end(), 0U);
  std::stable_sort(course.order.begin(), course.order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return course.legs[a].at < course.legs[b].at; });
  return course;
}

Race::Race(const Setup& setup, const Program& alone, const Course& course, int ranks, std::uint64_t draw)
    : setup_(setup),
      alone_(alone),
      course_(course),
      ranks_(static_cast<std::size_t>(ranks)),
      random_(static_cast<std::uint64_t>(setup.scenario.seed), draw),
      slowness_(draw_slowness(ranks, setup.scenario.speed_spread, random_)),
      all_arrived_(alone.meetings.size()),
      ends_(course.legs.size()) {
  for (std::size_t i = 0; i < alone.meetings.size(); ++i) {
    const Meeting& meeting = alone.meetings[i];
    arrival_at_[course.chains.of_task[meeting.arrives]] = i;
    if (!meeting.is_barrier()) leaves_[course.chains.of_task[meeting.leaves]] = i;
  }
}

void Race::run() {
  for (const std::uint32_t number : course_.order) pass(number);
}

void Race::pass(std::uint32_t number) {
  const Leg& leg = course_.legs[number];
  std::vector<double> starts(ranks_, 0);
  for (const std::uint32_t before : course_.chains.list[number].before) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) starts[rank] = std::max(starts[rank], ends_[before][rank]);
  }
  if (const auto found = leaves_.find(number); found != leaves_.end()) {
    for (double& start : starts) start = std::max(start, all_arrived_[found->second]);
  }
  std::vector<double>& ends = ends_[number];
  ends.resize(ranks_);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const double alone_us = drawn_us(leg, rank);
    ends[rank] = starts[rank] + alone_us;
    if (leg.lost_share == 0) continue;
    for (int i = 0; i < 2; ++i) {  // what it loses makes it meet more
      ends[rank] = starts[rank] + alone_us + leg.lost_share * held_us(rank, starts[rank], ends[rank]);
    }
  }
  if (const auto found = arrival_at_.find(number); found != arrival_at_.end()) {
    const bool barrier = alone_.meetings[found->second].is_barrier();
    const std::vector<double>& arrivals = barrier ? starts : ends;
    const double all = *std::max_element(arrivals.begin(), arrivals.end());
    all_arrived_[found->second] = all;
    if (barrier) {
      for (double& end : ends) end = std::max(end, all);
    }
  }
  if (leg.holds_sms) held_.push_back({std::move(starts), ends});
}

double Race::drawn_us(const Leg& leg, std::size_t rank) {
  if (rank == 0 || !leg.computes) return leg.us;
  double us = leg.us * slowness_[rank];
  if (leg.rows_us != 0) us += leg.rows_us * (leg.others_rows * (1 + rows(leg.rows_of, rank)) - 1);
  if (leg.deviation_us > 0) us += leg.deviation_us * random_.normal();
  return std::max(0.0, us);
}

// The latest ones are last, and begin and end one after the other on each rank.
double Race::held_us(std::size_t rank, double from, double until) const {
  double sum = 0;
  for (auto held = held_.rbegin(); held != held_.rend() && held->until[rank] > from; ++held) {
    sum += std::max(0.0, std::min(until, held->until[rank]) - std::max(from, held->from[rank]));
  }
  return sum;
}

double Race::rows(int index, std::size_t rank) {
  const auto [found, is_new] = rows_.try_emplace(index);
  if (is_new) {
    found->second.resize(ranks_);
    for (double& each : found->second) each = setup_.scenario.routing.rows_spread * random_.normal();
  }
  return found->second[rank];
}

double Race::wait_us(const Meeting& meeting) const {
  if (meeting.work == kNoTask) return 0;
  const std::vector<double>& ends = ends_[course_.chains.of_task[meeting.work]];
  return *std::max_element(ends.begin(), ends.end()) - ends.front();
}

}  // namespace moeline
