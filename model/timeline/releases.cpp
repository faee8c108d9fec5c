#include "timeline/releases.hpp"

namespace moeline {

Releases::Releases(const TaskGraph& graph, const Timeline& timeline)
    : graph_(graph), spans_(timeline.spans), begin_(2 * graph.size() + 1) {
  const auto events = static_cast<EventId>(2 * graph.size());
  for (EventId event = 0; event < events; ++event) {
    for (const EventId after : graph.successors(event)) ++begin_[after + 1];
  }
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  before_.resize(begin_.back());
  std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
  for (EventId event = 0; event < events; ++event) {
    for (const EventId after : graph.successors(event)) before_[next[after]++] = event;
  }
}

EventId Releases::of_start(TaskId task) const {
  const Time instant = released(task);
  return instant > Time::zero() ? one_at(start_of(task), instant) : kNoEvent;
}

EventId Releases::of_end(TaskId task) const { return one_at(end_of(task), spans_[task].end, start_of(task)); }

Time Releases::at(EventId event) const {
  const Span& span = spans_[task_of(event)];
  return is_start(event) ? span.start : span.end;
}

EventId Releases::one_at(EventId event, Time instant, EventId but) const {
  for (const EventId earlier : before(event)) {
    if (earlier != but && at(earlier) == instant) return earlier;
  }
  return kNoEvent;
}

EventId last_event(const Timeline& timeline) {
  EventId last = kNoEvent;
  for (TaskId task = 0; task < timeline.spans.size(); ++task) {
    if (last == kNoEvent || timeline.spans[task].end > timeline.spans[task_of(last)].end) last = end_of(task);
  }
  return last;
}

}  // namespace moeline
