#include "timeline/shortened.hpp"

#include <algorithm>

#include "base/parallel.hpp"

namespace moeline {

std::vector<Time> slack(const TaskGraph& graph, const Timeline& timeline, const History& history) {
  std::vector<Time> latest(2 * graph.size(), timeline.makespan);  // by event
  std::vector<Time> own(graph.size());                            // by task: from its start until its work was done
  const auto no_later_than_successors = [&](EventId event) {
    for (const EventId after : graph.successors(event)) {
      const TaskId task = task_of(after);
      const bool own_end = is_start(event) && after == end_of(task_of(event));
      const Time since = own_end ? own[task] : is_start(after) ? graph.task(task).delay : Time::zero();
      latest[event] = std::min(latest[event], latest[after] - since);
    }
  };
  for (Position at = history.size(); at-- > 0;) {
    const TaskId task = history.change(at).task;
    const History::Entry& entry = history[at];
    if (entry.kind == History::Kind::done) own[task] = history.change(at).at - timeline.spans[task].start;
    if (entry.kind == History::Kind::end) no_later_than_successors(end_of(task));
    if (entry.kind != History::Kind::start) continue;
    no_later_than_successors(start_of(task));
    const Span& span = timeline.spans[task];
    if (span.start == span.ready || entry.cause == kNowhere) continue;
    Time& freed = latest[end_of(history.change(entry.cause).task)];
    freed = std::min(freed, latest[start_of(task)]);
  }
  std::vector<Time> slack(graph.size());
  for (TaskId id = 0; id < graph.size(); ++id) slack[id] = latest[end_of(id)] - timeline.spans[id].end;
  return slack;
}

namespace {

// Factors of one pass: an event's times for all of them lie together, and it is memory that a pass costs.
constexpr std::size_t kTogether = 4;

std::size_t index_of(EventId event) { return kTogether * event; }

}  // namespace

Shortened::Shortened(const TaskGraph& graph, const Timeline& timeline, const History& history, Time since)
    : graph_(graph), history_(history), freed_by_(graph.size(), kNoEvent), own_ps_(graph.size()) {
  using Kind = History::Kind;
  order_.reserve(2 * graph.size());
  for (Position position = 0; position < history.size(); ++position) {
    const History::Entry& entry = history[position];
    const Change& change = history.change(position);
    const Span& span = timeline.spans[change.task];
    if (entry.kind == Kind::start) {
      order_.push_back(start_of(change.task));
      if (span.start > span.ready && entry.cause != kNowhere) {
        freed_by_[change.task] = end_of(history.change(entry.cause).task);
      }
      if (first_ == kNoEvent && since > Time::zero() && span.start == since) first_ = start_of(change.task);
    }
    if (entry.kind == Kind::done) own_ps_[change.task] = static_cast<double>((change.at - span.start).count());
    if (entry.kind == Kind::end) {
      order_.push_back(end_of(change.task));
      if (graph.successors(end_of(change.task)).empty()) last_.push_back(end_of(change.task));
    }
  }
}

std::vector<Shortened::Result> Shortened::operator()(std::size_t count, const SetFactors& set) const {
  std::vector<Result> results(count);
  const std::size_t workers = std::min(cores(), count / kTogether + 1);
  parallel_for(workers, workers, [&](std::size_t worker) {
    std::vector<Factors> several(std::min(count, kTogether));
    Times at(index_of(static_cast<EventId>(2 * graph_.size())));  // once: it is most of a pass to ask for it
    for (std::size_t first = worker * kTogether; first < count; first += workers * kTogether) {
      several.resize(std::min(kTogether, count - first));
      for (std::size_t i = 0; i < several.size(); ++i) {
        several[i].run.assign(graph_.size(), 1);
        several[i].delay.assign(graph_.size(), 1);
        set(first + i, several[i]);
      }
      pass(several, at);
      for (std::size_t i = 0; i < several.size(); ++i) results[first + i] = result(several[i], i, at);
    }
  });
  return results;
}

void Shortened::pass(std::span<const Factors> several, Times& at) const {
  for (const EventId event : order_) {
    double* const here = at.data() + index_of(event);
    const TaskId task = task_of(event);
    std::fill_n(here, kTogether, 0);
    const auto wait_for = [&](EventId before) {
      const double* const there = at.data() + index_of(before);
      for (std::size_t i = 0; i < kTogether; ++i) here[i] = std::max(here[i], there[i]);
    };
    const auto others = history_.releases().before(event);
    if (is_start(event)) {
      for (const EventId before : others) wait_for(before);
      const auto delay = static_cast<double>(graph_.task(task).delay.count());
      for (std::size_t i = 0; i < several.size(); ++i) here[i] += delay * several[i].delay[task];
      if (freed_by_[task] != kNoEvent) wait_for(freed_by_[task]);
    } else {
      wait_for(start_of(task));
      for (std::size_t i = 0; i < several.size(); ++i) here[i] += own_ps_[task] * several[i].run[task];
      for (const EventId before : others) wait_for(before);  // its own start among them, which is no later
    }
  }
}

Shortened::Result Shortened::result(const Factors& factors, std::size_t index, const Times& at) const {
  const auto ps = [&](EventId event) { return at[index_of(event) + index]; };
  const auto earlier = [&](EventId a, EventId b) { return ps(a) < ps(b); };
  EventId event = *std::max_element(last_.begin(), last_.end(), earlier);
  Result result;
  result.span = Time(static_cast<std::int64_t>(ps(event) - (first_ == kNoEvent ? 0 : ps(first_))));
  while (event != kNoEvent) {
    const TaskId task = task_of(event);
    const auto before = history_.releases().before(event);
    const auto last = std::max_element(before.begin(), before.end(), earlier);
    EventId cause = last == before.end() ? kNoEvent : *last;
    if (is_start(event)) {
      const bool waited_for_sms = freed_by_[task] != kNoEvent && ps(freed_by_[task]) == ps(event);
      event = waited_for_sms ? freed_by_[task] : cause;
      continue;
    }
    const double own = own_ps_[task] * factors.run[task];
    if (ps(start_of(task)) + own == ps(event)) {
      result.path.push_back({task, Time(static_cast<std::int64_t>(own))});
      cause = start_of(task);
    }
    event = cause;
  }
  return result;
}

}  // namespace moeline
