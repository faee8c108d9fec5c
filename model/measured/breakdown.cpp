#include "measured/breakdown.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

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

namespace {

class Finder {
 public:
  Finder(const Measured& m, const Release& release) : m_(m), release_(release) {}

  // The gap that `next` ends, in two where its kernel stood still long after what it had waited for: first that, and
  // then nothing that the trace says.
  void add(std::uint32_t next, Time since, std::vector<Gap>& gaps) const {
    const Time start = time_of(m_.trace.gpu_events[next].start_ns);
    const Gap reason = reason_of(next);
    const bool waited = binding_of(next) != nullptr;
    const Time met = waited ? std::clamp(time_of(release_.event_ns[next]), since, start) : start;
    const bool idle_after = start - met >= time_of(kUnexplainedNs);
    const Time explained = idle_after ? met - since : start - since;
    if (explained > Time::zero()) gaps.push_back({reason.cause, explained, next, reason.waited_for});
    if (idle_after) gaps.push_back({GapCause::unexplained, start - met, next, -1});
  }

 private:
  [[nodiscard]] const Dependency* binding_of(std::uint32_t next) const {
    const std::int64_t binding = release_.binding[next];
    return binding < 0 ? nullptr : &m_.dependencies[static_cast<std::size_t>(binding)];
  }

  [[nodiscard]] Gap reason_of(std::uint32_t next) const {
    const Dependency* edge = binding_of(next);
    if (edge == nullptr) return {GapCause::unexplained};
    if (edge->reason == Reason::launch) {
      return {host_waited(edge->before.index) ? GapCause::host_wait : GapCause::launch};
    }
    if (edge->reason == Reason::stream_order) return {GapCause::between};
    const bool communicates = is_communication(m_.meaning.classes[edge->before.index]);
    return {communicates ? GapCause::communication : GapCause::other_stream, Time{}, next, edge->before.index};
  }

  [[nodiscard]] bool host_waited(std::uint32_t call) const {
    const std::int64_t binding = release_.call_binding[call];
    return binding >= 0 && m_.dependencies[static_cast<std::size_t>(binding)].reason == Reason::host_wait;
  }

  const Measured& m_;
  const Release& release_;
};

}  // namespace

const std::string& name_of(GapCause cause) {
  static const std::array<std::string, kGapCauses> names = {
      "launch", "host_wait", "communication", "other_stream", "between_kernels", "unexplained", "after_last_kernel"};
  return names[static_cast<std::size_t>(cause)];
}

std::vector<Gap> gaps_of(const Measured& m, const Release& release, const std::vector<std::uint32_t>& events,
                         const std::set<std::uint32_t>& streams, const Interval& span) {
  const Finder finder(m, release);
  std::vector<Gap> gaps;
  Time busy_until = span.start;
  std::uint32_t last = events.front();
  for (const std::uint32_t i : events) {
    const GpuEvent& event = m.trace.gpu_events[i];
    if (event.end_ns >= m.trace.gpu_events[last].end_ns) last = i;
    if (!streams.contains(event.stream)) continue;
    if (time_of(event.start_ns) > busy_until) finder.add(i, busy_until, gaps);
    busy_until = std::max<Time>(busy_until, std::chrono::nanoseconds(event.end_ns));
  }
  if (span.end > busy_until) gaps.push_back({GapCause::after_last, span.end - busy_until, last, -1});
  return gaps;
}

}  // namespace moeline
