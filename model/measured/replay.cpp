#include "measured/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "measured/breakdown.hpp"

namespace moeline {
namespace {

// Tables of a graph under construction that labels point into.
class Labels {
 public:
  Labels(const Measured& m, TaskGraphDraft& draft) : m_(m), draft_(draft) {
    for (const TracePhase& phase : m.meaning.phases) {
      draft.add_phase({phase.name, m.trace.gpus[phase.gpu].rank, phase.place.micro_batch, phase.place.layer});
    }
    no_phase_ = draft.add_phase({"", 0, 0, 0});
    host_ = draft.add_stream({0, 0, "host", Role::host});
  }

  Label of_event(std::uint32_t i) {
    const GpuEvent& event = m_.trace.gpu_events[i];
    const KernelClass c = m_.meaning.classes[i];
    const std::int32_t phase = m_.meaning.places[i].phase;
    Label label;
    label.name = draft_.intern(m_.trace.name(event));
    label.task_class = draft_.add_class(name_of(c), is_communication(c) ? Role::communication : Role::compute);
    label.stream = stream(event);
    label.phase = phase == kNoPhase ? no_phase_ : static_cast<std::uint32_t>(phase);
    return label;
  }
  Label of_call() {
    Label label;
    label.name = draft_.intern("launch");
    label.task_class = draft_.add_class("host", Role::host);
    label.stream = host_;
    label.phase = no_phase_;
    return label;
  }

 private:
  std::uint16_t stream(const GpuEvent& event) {
    const auto [found, added] = streams_.try_emplace({event.gpu, event.stream}, std::uint16_t{0});
    if (added) {
      found->second = draft_.add_stream(
          {m_.trace.rank(event), event.stream, fmt::format("stream {}", event.stream), Role::compute});
    }
    return found->second;
  }

  const Measured& m_;
  TaskGraphDraft& draft_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint16_t> streams_;
  std::uint32_t no_phase_ = 0;
  std::uint16_t host_ = 0;
};

constexpr TaskId kNotYet = ~TaskId{0};

class GraphWriter {
 public:
  GraphWriter(const Measured& m, const WhatIf& what_if)
      : m_(m),
        release_(release_times(m)),
        factors_(m, what_if.scales),
        keep_(kept_dependencies(m, what_if.removed)),
        of_call_(m.trace.calls.size(), kNotYet),
        labels_(m, draft_) {
    draft_.reserve(m.trace.gpu_events.size() + m.trace.calls.size(), m.dependencies.size());
  }

  ReplayGraph write() {
    look_at_dependencies();
    const std::vector<Pause> pauses = pauses_of(m_, release_);
    for (std::uint32_t i = 0; i < m_.trace.gpu_events.size(); ++i) add_event(i, pauses[i]);
    for (std::uint32_t i = 0; i < m_.trace.gpu_events.size(); ++i) {
      if (!cuts_[i].empty()) add_pieces(i);
    }
    for (std::size_t i = 0; i < m_.dependencies.size(); ++i) {
      if (keep_[i]) add_edge(m_.dependencies[i]);
    }
    return {TaskGraph(std::move(draft_)), std::move(of_event_), std::move(event_of_), std::move(gap_ns_)};
  }

 private:
  // The place in an event at which another starts, and the piece of it that ends there.
  struct Cut {
    std::int64_t at_ns = 0;
    TaskId piece = kNotYet;
  };

  [[nodiscard]] std::int64_t length_ns(std::uint32_t event) const {
    return m_.trace.gpu_events[event].end_ns - m_.trace.gpu_events[event].start_ns;
  }
  // A kernel whose end waited for another's works no longer than it says.
  [[nodiscard]] std::int64_t work_ns(std::uint32_t event) const {
    const std::int64_t work = m_.trace.gpu_events[event].work_ns;
    return held_[event] && work >= 0 ? std::min(work, length_ns(event)) : length_ns(event);
  }
  [[nodiscard]] std::int64_t offset_ns(const Dependency& edge) const {
    return m_.trace.gpu_events[edge.after.index].start_ns - m_.trace.gpu_events[edge.before.index].start_ns;
  }

  void look_at_dependencies() {
    cuts_.resize(m_.trace.gpu_events.size());
    held_.resize(m_.trace.gpu_events.size(), false);
    waits_.resize(m_.trace.calls.size(), false);
    since_launch_ns_.resize(m_.trace.calls.size(), 0);
    has_one_before_.resize(m_.trace.calls.size(), false);
    for (std::size_t i = 0; i < m_.dependencies.size(); ++i) {
      const Dependency& edge = m_.dependencies[i];
      if (keep_[i] && edge.order == Order::end_to_end) held_[edge.after.index] = true;
      if (keep_[i] && edge.reason == Reason::host_wait) waits_[edge.after.index] = true;
      if (edge.reason == Reason::host_order) {
        since_launch_ns_[edge.after.index] = edge.host_ns;
        has_one_before_[edge.after.index] = true;
      }
      if (!keep_[i] || edge.order != Order::part_to_start || offset_ns(edge) == 0) continue;
      cuts_[edge.before.index].push_back({offset_ns(edge)});
    }
    for (std::vector<Cut>& cuts : cuts_) {
      std::ranges::sort(cuts, {}, &Cut::at_ns);
      const auto same = [](const Cut& a, const Cut& b) { return a.at_ns == b.at_ns; };
      cuts.erase(std::unique(cuts.begin(), cuts.end(), same), cuts.end());
    }
  }

  TaskId add(const Task& task, const Label& label, std::int64_t event, std::int64_t gap_ns) {
    event_of_.push_back(event);
    gap_ns_.push_back(gap_ns);
    return draft_.add(task, label);
  }

  void add_event(std::uint32_t i, const Pause& pause) {
    Task task;
    if (cuts_[i].empty()) task.solo = scaled(time_of(work_ns(i)), factors_.of(i));
    task.delay = std::chrono::nanoseconds(pause.given_ns) + scaled(time_of(pause.gap_ns), factors_.gaps);
    of_event_.push_back(add(task, labels_.of_event(i), i, pause.gap_ns));
    if (pause.anchor >= 0) {
      draft_.start_after_start(of_event_[static_cast<std::size_t>(pause.anchor)], of_event_.back());
    }
  }

  void add_pieces(std::uint32_t i) {
    std::int64_t from_ns = 0;
    TaskId before = kNotYet;
    const auto next = [&](std::int64_t until_ns) {
      Task piece;
      piece.solo = scaled(time_of(until_ns - from_ns), factors_.of(i));
      const TaskId task = add(piece, labels_.of_event(i), i, 0);
      if (before == kNotYet) {
        draft_.start_after_start(of_event_[i], task);
      } else {
        draft_.start_after_end(before, task);
      }
      from_ns = until_ns;
      return before = task;
    };
    for (Cut& cut : cuts_[i]) cut.piece = next(cut.at_ns);
    draft_.end_after_end(next(length_ns(i)), of_event_[i]);
  }

  // What no dependency says of the host's time; before its first launch it is the profiler's, which no host shortens.
  [[nodiscard]] std::int64_t delay_ns(std::uint32_t call) const {
    const std::int64_t left = m_.trace.calls[call].start_ns - release_.call_ns[call];
    return std::max<std::int64_t>(0, left) + (waits_[call] ? 0 : since_launch_ns_[call]);
  }

  TaskId task_of_call(std::uint32_t i) {
    if (of_call_[i] == kNotYet) {
      Task task;
      task.solo = scaled(time_of(release_.latency_ns[i]), factors_.host);
      task.delay = scaled(time_of(delay_ns(i)), has_one_before_[i] ? factors_.host : 1);
      of_call_[i] = add(task, labels_.of_call(), -1, has_one_before_[i] ? delay_ns(i) : 0);
    }
    return of_call_[i];
  }
  TaskId task_of(Node node) { return node.is_call ? task_of_call(node.index) : of_event_[node.index]; }

  void add_edge(const Dependency& edge) {
    const TaskId before = task_of(edge.before);
    const TaskId after = task_of(edge.after);
    if (edge.after.is_call) return add_host_time(edge, before, after);
    if (edge.order == Order::end_to_start) {
      draft_.start_after_end(before, after);
    } else if (edge.order == Order::end_to_end) {
      draft_.end_after_end(before, after);
    } else if (edge.order == Order::start_to_start || offset_ns(edge) == 0) {
      draft_.start_after_start(before, after);
    } else {  // `after` starts as far into `before` as it did
      const auto cut = std::ranges::lower_bound(cuts_[edge.before.index], offset_ns(edge), {}, &Cut::at_ns);
      draft_.start_after_end(cut->piece, after);
    }
  }

  // A launch that nothing but the one before it holds has the host's time as its delay.
  void add_host_time(const Dependency& edge, TaskId before, TaskId after) {
    TaskId waiting = after;
    if (waits_[edge.after.index]) {
      Task task;
      task.solo = scaled(time_of(edge.host_ns), factors_.host);
      waiting = add(task, labels_.of_call(), -1, 0);
      draft_.start_after_end(waiting, after);
    }
    if (edge.order == Order::start_to_start) {
      draft_.start_after_start(before, waiting);
    } else {
      draft_.start_after_end(before, waiting);
    }
  }

  const Measured& m_;
  Release release_;
  ScaleFactors factors_;
  std::vector<bool> keep_;
  std::vector<std::vector<Cut>> cuts_;         // by event
  std::vector<bool> held_;                     // by event: its end waits for another's
  std::vector<bool> waits_;                    // by call: the host waited before it
  std::vector<bool> has_one_before_;           // by call: a launch of its program
  std::vector<std::int64_t> since_launch_ns_;  // by call: the host's own time since the one before
  std::vector<TaskId> of_call_;
  TaskGraphDraft draft_;
  Labels labels_;
  std::vector<TaskId> of_event_;
  std::vector<std::int64_t> event_of_, gap_ns_;
};

}  // namespace

ReplayGraph replay_graph(const Measured& measured, const WhatIf& what_if) {
  return GraphWriter(measured, what_if).write();
}

Time gpu_span(const ReplayGraph& replay, const Timeline& timeline) {
  if (replay.of_event.empty()) return Time::zero();
  const Time first = timeline.spans[replay.of_event.front()].start;
  Time last = first;
  for (const TaskId task : replay.of_event) last = std::max(last, timeline.spans[task].end);
  return last - first;
}

Time measured_span(const Trace& trace) {
  std::int64_t first = trace.gpu_events.empty() ? 0 : trace.gpu_events.front().start_ns;
  std::int64_t last = first;
  for (const GpuEvent& event : trace.gpu_events) last = std::max(last, event.end_ns);
  return std::chrono::nanoseconds(last - first);
}

ReplaySpans::ReplaySpans(const Measured& measured)
    : m_(measured), replay_(replay_graph(measured)), order_(replay_.graph.topological_order()) {}

Time ReplaySpans::operator()(const std::vector<WhatIf::Scale>& scales) const {
  if (replay_.of_event.empty()) return Time::zero();
  const std::vector<Time> at = times(ScaleFactors(m_, scales));
  const Time first = at[start_of(replay_.of_event.front())];
  Time last = first;
  for (const TaskId task : replay_.of_event) last = std::max(last, at[end_of(task)]);
  return last - first;
}

// By event: nothing in the graph has neighbours that slow it down, so each happens when all before it have.
std::vector<Time> ReplaySpans::times(const ScaleFactors& factors) const {
  std::vector<Time> at(2 * replay_.graph.size(), Time::zero());
  for (const EventId event : order_) {
    const TaskId id = task_of(event);
    const Task& task = replay_.graph.task(id);
    const bool is_host = replay_.event_of[id] < 0;
    if (is_start(event)) {
      const Time gap = std::chrono::nanoseconds(replay_.gap_ns[id]);
      at[event] += task.delay - gap + scaled(gap, is_host ? factors.host : factors.gaps);
      const double factor = is_host ? factors.host : factors.of(static_cast<std::uint32_t>(replay_.event_of[id]));
      at[end_of(id)] = std::max(at[end_of(id)], at[event] + scaled(task.solo, factor));
    }
    for (const EventId after : replay_.graph.successors(event)) {
      if (after != end_of(id)) at[after] = std::max(at[after], at[event]);
    }
  }
  return at;
}

}  // namespace moeline
