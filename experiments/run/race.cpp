#include "experiments/run/race.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "timeline/intervals.hpp"

namespace moeline {
namespace {

// Of random numbers: what kernels vary by, apart from what ranks do.
constexpr std::uint64_t kJitterStreams = 1 << 16;

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
  course.chains = chains_of(alone);
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
  for (std::size_t i = 0; i < alone.meetings.size(); ++i) {
    const Meeting& meeting = alone.meetings[i];
    course.legs[course.chains.of_task[meeting.arrives]].arrives = i;
    if (!meeting.is_barrier()) course.legs[course.chains.of_task[meeting.leaves]].leaves = i;
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
      jitters_(
          normals(static_cast<std::uint64_t>(setup.scenario.seed), kJitterStreams + draw, course.legs.size() * ranks_)),
      slowness_(draw_slowness(ranks, setup.scenario.speed_spread, random_)),
      all_arrived_(alone.meetings.size()),
      starts_(ranks_),
      times_(ranks_),
      ends_(course.legs.size() * ranks_) {}

void Race::run() {
  for (const std::uint32_t number : course_.order) pass(number);
}

void Race::pass(std::uint32_t number) {
  const Leg& leg = course_.legs[number];
  set_starts(number);
  draw_times(number);
  double* ends = ends_of(number);
  for (std::size_t rank = 0; rank < ranks_; ++rank) ends[rank] = starts_[rank] + times_[rank];
  if (leg.lost_share > 0) lose_to_held(leg, ends);
  if (leg.arrives != kNoMeeting) meet(leg, ends);
  if (leg.holds_sms) held_.push_back({starts_, {ends, ends + ranks_}});
}

void Race::set_starts(std::uint32_t number) {
  const Leg& leg = course_.legs[number];
  std::fill(starts_.begin(), starts_.end(), leg.leaves == kNoMeeting ? 0 : all_arrived_[leg.leaves]);
  for (const std::uint32_t before : course_.chains.list[number].before) {
    const double* ends = ends_of(before);
    for (std::size_t rank = 0; rank < ranks_; ++rank) starts_[rank] = std::max(starts_[rank], ends[rank]);
  }
}

void Race::draw_times(std::uint32_t number) {
  const Leg& leg = course_.legs[number];
  std::fill(times_.begin(), times_.end(), leg.us);
  if (!leg.computes) return;
  const double* jitters = jitters_->data() + number * ranks_;
  for (std::size_t rank = 1; rank < ranks_; ++rank) {
    times_[rank] = leg.us * slowness_[rank] + leg.deviation_us * jitters[rank];
  }
  if (leg.rows_us != 0) {
    const std::vector<double>& rows_of = rows(leg.rows_of);
    for (std::size_t rank = 1; rank < ranks_; ++rank) {
      times_[rank] += leg.rows_us * (leg.others_rows * (1 + rows_of[rank]) - 1);
    }
  }
  for (double& time : times_) time = std::max(0.0, time);
}

void Race::lose_to_held(const Leg& leg, double* ends) const {
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (int i = 0; i < 2; ++i) {  // what it loses makes it meet more
      ends[rank] = starts_[rank] + times_[rank] + leg.lost_share * held_us(rank, starts_[rank], ends[rank]);
    }
  }
}

void Race::meet(const Leg& leg, double* ends) {
  const bool barrier = alone_.meetings[leg.arrives].is_barrier();
  const double* arrivals = barrier ? starts_.data() : ends;
  const double all = *std::max_element(arrivals, arrivals + ranks_);
  all_arrived_[leg.arrives] = all;
  if (!barrier) return;
  for (std::size_t rank = 0; rank < ranks_; ++rank) ends[rank] = std::max(ends[rank], all);
}

// The latest ones are last, and begin and end one after the other on each rank.
double Race::held_us(std::size_t rank, double from, double until) const {
  double sum = 0;
  for (auto held = held_.rbegin(); held != held_.rend() && held->until[rank] > from; ++held) {
    sum += std::max(0.0, std::min(until, held->until[rank]) - std::max(from, held->from[rank]));
  }
  return sum;
}

const std::vector<double>& Race::rows(int index) {
  const auto [found, is_new] = rows_.try_emplace(index, ranks_);
  if (is_new) {
    for (double& each : found->second) each = setup_.scenario.routing.rows_spread * random_.normal();
  }
  return found->second;
}

double Race::wait_us(const Meeting& meeting) const {
  if (meeting.work == kNoTask) return 0;
  const double* ends = ends_of(course_.chains.of_task[meeting.work]);
  return *std::max_element(ends, ends + ranks_) - ends[0];
}

}  // namespace moeline
