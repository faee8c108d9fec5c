#include "timeline/history.hpp"

#include "engine/domains.hpp"

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

History::History(const TaskGraph& graph, const Timeline& timeline)
    : graph_(graph),
      timeline_(timeline),
      domains_(coupled_domains(graph)),
      releases_(graph, timeline),
      entries_(timeline.changes.size()) {
  MOELINE_CHECK(graph.size() == 0 || !timeline.changes.empty(), "a timeline recorded without its changes");
  MOELINE_CHECK(timeline.changes.size() < kNowhere, "too many changes of speed");
  find_kinds();
  find_causes();
}

std::uint32_t History::domain_of(TaskId task) const {
  return moeline::domain_of(graph_.task(task).pool, graph_.usages(task), domains_);
}

void History::find_kinds() {
  std::vector<Position> last(graph_.size(), kNowhere);
  std::vector<Position> last_at_work(graph_.size(), kNowhere);
  for (Position at = 0; at < size(); ++at) {
    const TaskId task = change(at).task;
    const bool works = change(at).speed > 0;
    entries_[at].previous = last[task];
    if (last_at_work[task] == kNowhere) entries_[at].kind = works ? Kind::start : Kind::wait;
    last[task] = at;
    if (works) last_at_work[task] = at;
  }
  for (Position at = 0; at < size(); ++at) {
    const TaskId task = change(at).task;
    if (at > last_at_work[task]) entries_[at].kind = at == last[task] ? Kind::end : Kind::speed;
    if (entries_[at].previous == last_at_work[task]) entries_[at].kind = Kind::done;
  }
}

void History::find_causes() {
  std::vector<Position> last_event(graph_.resources().size(), kNowhere);    // by domain
  std::vector<Position> last_release(graph_.resources().size(), kNowhere);  // by pool, of SMs
  for (Position at = 0; at < size(); ++at) {
    const Task& task = graph_.task(change(at).task);
    const std::uint32_t domain = domain_of(change(at).task);
    if (domain == kNoDomain) continue;
    Entry& entry = entries_[at];
    const bool begins = entry.kind == Kind::start || entry.kind == Kind::wait;
    entry.cause = !begins ? last_event[domain] : task.pool == kNoPool ? kNowhere : last_release[task.pool];
    if (entry.cause != kNowhere && change(entry.cause).at != change(at).at) entry.cause = kNowhere;
    if (entry.kind != Kind::speed) last_event[domain] = at;
    if (entry.kind == Kind::end && task.hold == Hold::resident) last_release[task.pool] = at;
  }
}

}  // namespace moeline
