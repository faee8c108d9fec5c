#include "measured/breakdown.hpp"

#include <algorithm>

namespace moeline {
namespace {

std::vector<Interval> clipped(const std::vector<Interval>& intervals, const Interval& window) {
  std::vector<Interval> parts;
  auto it = std::partition_point(intervals.begin(), intervals.end(),
                                 [&](const Interval& interval) { return interval.end <= window.start; });
  for (; it != intervals.end() && it->start < window.end; ++it) {
    parts.push_back({std::max(it->start, window.start), std::min(it->end, window.end)});
  }
  return parts;
}

}  // namespace

Work work_of(KernelClass c) {
  if (c == KernelClass::copy) return Work::neither;
  return is_communication(c) ? Work::communication : Work::compute;
}

double Breakdown::overlap_fraction() const { return ratio(communication - exposed, communication); }

void BusyTimes::add(const Interval& interval, Work work) {
  any.push_back(interval);
  if (work == Work::compute) compute.push_back(interval);
  if (work == Work::communication) communication.push_back(interval);
}

void BusyTimes::unite_all() {
  for (std::vector<Interval>* intervals : {&compute, &communication, &any}) *intervals = unite(std::move(*intervals));
}

BusyTimes BusyTimes::inside(const Interval& window) const {
  return {clipped(compute, window), clipped(communication, window), clipped(any, window)};
}

Breakdown BusyTimes::breakdown(Time span, const std::vector<Interval>& hiding) const {
  Breakdown b;
  b.span = span;
  b.idle = span - total(any);
  b.compute = total(compute);
  b.communication = total(communication);
  b.exposed = b.communication - overlap(communication, hiding);
  return b;
}

Interval limits_of(const Trace& trace, const std::vector<std::uint32_t>& events) {
  Interval limits = interval_of(trace.gpu_events[events.front()]);
  for (const std::uint32_t i : events) {
    const Interval interval = interval_of(trace.gpu_events[i]);
    limits.start = std::min(limits.start, interval.start);
    limits.end = std::max(limits.end, interval.end);
  }
  return limits;
}

}  // namespace moeline
