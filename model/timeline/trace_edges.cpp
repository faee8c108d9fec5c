#include "timeline/trace_edges.hpp"

#include <algorithm>
#include <set>

namespace moeline {
namespace {

class EdgeFinder {
 public:
  EdgeFinder(const TaskGraph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline), releases_(graph, timeline) {}

  // What the graph does not say: who freed SMs, and when a task's own work was done.
  void look_into(const History& history) {
    for (Position at = 0; at < history.size(); ++at) {
      const History::Entry& entry = history[at];
      const Change& change = history.change(at);
      const Span& span = timeline_.spans[change.task];
      const bool waited = entry.kind == History::Kind::start && span.start > span.ready && entry.cause != kNowhere;
      if (waited) freed_by_[change.task] = end_of(history.change(entry.cause).task);
      if (entry.kind == History::Kind::done) done_[change.task] = change.at;
    }
  }

  std::map<std::uint32_t, TraceEdges> find() {
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (is_host(task)) continue;
      find_start(task);
      find_end(task);
    }
    return std::move(by_rank_);
  }

 private:
  using Sources = std::vector<EventId>;

  [[nodiscard]] const Stream& stream_of(TaskId task) const { return graph_.streams()[graph_.label(task).stream]; }
  [[nodiscard]] bool is_host(TaskId task) const { return graph_.task_class(task).role == Role::host; }
  [[nodiscard]] bool is_join(TaskId task) const {
    return is_host(task) && timeline_.spans[task].start == timeline_.spans[task].end;
  }
  [[nodiscard]] Time at(EventId event) const {
    const Span& span = timeline_.spans[task_of(event)];
    return is_start(event) ? span.start : span.end;
  }

  void find_start(TaskId task) {
    Sources sources = waited_for(start_of(task));
    if (const auto freed = freed_by_.find(task); freed != freed_by_.end()) add(freed->second, start_of(task), sources);
    keep_last(start_of(task), sources);
  }

  void find_end(TaskId task) {
    Sources sources = waited_for(end_of(task));
    std::erase_if(sources, [](EventId from) { return is_start(from); });
    const bool held = std::ranges::any_of(sources, [&](EventId from) { return at(from) == at(end_of(task)); });
    if (const auto done = done_.find(task); held && done != done_.end()) {
      by_rank_[stream_of(task).rank].work[task] = done->second - timeline_.spans[task].start;
    }
    keep_last(end_of(task), sources);
  }

  // Kernels of the rank, through joins.
  [[nodiscard]] Sources waited_for(EventId event) const {
    constexpr std::size_t kMost = 256;
    Sources sources;
    std::set<EventId> seen;
    Sources open{event};
    while (!open.empty() && seen.size() < kMost) {
      const EventId here = open.back();
      open.pop_back();
      for (const EventId before : releases_.before(here)) {
        if (task_of(before) == task_of(event) || !seen.insert(before).second) continue;
        if (is_join(task_of(before))) {
          open.push_back(before);
        } else {
          add(before, event, sources);
        }
      }
    }
    return sources;
  }

  void add(EventId from, EventId to, Sources& sources) const {
    const TaskId task = task_of(from);
    const bool other_stream = stream_of(task).id != stream_of(task_of(to)).id;
    if (!is_host(task) && other_stream && stream_of(task).rank == stream_of(task_of(to)).rank) sources.push_back(from);
  }

  void keep_last(EventId to, Sources& sources) {
    std::ranges::sort(sources, [&](EventId a, EventId b) { return at(a) != at(b) ? at(a) > at(b) : a > b; });
    std::set<std::uint32_t> streams;
    for (const EventId from : sources) {
      if (!streams.insert(stream_of(task_of(from)).id).second) continue;
      by_rank_[stream_of(task_of(to)).rank].edges.push_back({from, to});
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  Releases releases_;
  std::map<TaskId, EventId> freed_by_;
  std::map<TaskId, Time> done_;
  std::map<std::uint32_t, TraceEdges> by_rank_;
};

}  // namespace

std::map<std::uint32_t, TraceEdges> trace_edges(const TaskGraph& graph, const Timeline& timeline) {
  EdgeFinder finder(graph, timeline);
  if (!timeline.changes.empty()) finder.look_into(History(graph, timeline));
  return finder.find();
}

}  // namespace moeline
