#include "measured/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "measured/names.hpp"
#include "measured/release.hpp"

namespace moeline {
namespace {

constexpr const char* kKernelPrefix = "kernel:";

std::string phase_of(const Measured& m, Node node) {
  const std::int32_t phase = node.is_call ? kNoPhase : m.meaning.places[node.index].phase;
  return phase == kNoPhase ? "" : m.meaning.phases[static_cast<std::size_t>(phase)].name;
}

std::vector<std::string> phase_names(const Measured& m) {
  std::set<std::string> names;
  for (const TracePhase& phase : m.meaning.phases) names.insert(phase.name);
  return {names.begin(), names.end()};
}

bool crosses_streams(Reason reason) {
  return reason == Reason::event_wait || reason == Reason::flow || reason == Reason::start_time;
}

// Factors of every event's duration, of the gaps before kernels, and of the host's time.
class Factors {
 public:
  Factors(const Measured& m, const std::vector<WhatIf::Scale>& scales) : m_(m), events_(m.trace.gpu_events.size(), 1) {
    for (const WhatIf::Scale& scale : scales) apply(scale);
  }
  [[nodiscard]] double of(std::uint32_t event) const { return events_[event]; }
  double gaps = 1;
  double host = 1;

 private:
  void apply(const WhatIf::Scale& scale) {
    if (scale.what == "gaps") {
      gaps *= scale.factor;
    } else if (scale.what == "host") {
      host *= scale.factor;
    } else if (!apply_to_events(scale)) {
      refuse(scale.what);
    }
  }

  bool apply_to_events(const WhatIf::Scale& scale) {
    bool any = false;
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (!means(scale.what, i)) continue;
      events_[i] *= scale.factor;
      any = true;
    }
    return any;
  }

  [[nodiscard]] bool means(const std::string& what, std::uint32_t event) const {
    const KernelClass c = m_.meaning.classes[event];
    if (what == "compute") return !is_communication(c) && c != KernelClass::copy;
    if (what == "transfer") return is_communication(c) && c != KernelClass::barrier;
    if (what == "barrier" || what == "dispatch" || what == "combine") return name_of(c) == what;
    if (what.starts_with(kKernelPrefix)) return name_of(c) == what.substr(std::string_view(kKernelPrefix).size());
    return phase_of(m_, {event, false}) == what;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    std::vector<std::string> names = {"compute", "transfer", "barrier", "dispatch", "combine", "gaps", "host"};
    for (const KernelClass c : m_.meaning.classes) {
      std::string name = kKernelPrefix + name_of(c);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
    for (const std::string& phase : phase_names(m_)) names.push_back(phase);
    const bool known = std::find(names.begin(), names.end(), what) != names.end();
    throw SpecError("--scale: " + (known ? "the trace has no " + what : unknown_name("name", what, names)));
  }

  const Measured& m_;
  std::vector<double> events_;
};

bool is_removed(const Measured& m, const Dependency& edge, const WhatIf::Removed& removed) {
  if (removed.after.empty()) return name_of(edge.reason) == removed.before;
  return crosses_streams(edge.reason) && phase_of(m, edge.before) == removed.before &&
         phase_of(m, edge.after) == removed.after;
}

std::vector<bool> kept(const Measured& m, const std::vector<WhatIf::Removed>& removed) {
  std::vector<bool> keep(m.dependencies.size(), true);
  for (const WhatIf::Removed& each : removed) {
    bool any = false;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (!is_removed(m, m.dependencies[i], each)) continue;
      keep[i] = false;
      any = true;
    }
    if (any) continue;
    std::set<std::string> known;
    for (const Dependency& edge : m.dependencies) {
      known.insert(crosses_streams(edge.reason) ? phase_of(m, edge.before) + "->" + phase_of(m, edge.after)
                                                : name_of(edge.reason));
    }
    throw SpecError("--remove: " + unknown_name("dependency",
                                                each.after.empty() ? each.before : each.before + "->" + each.after,
                                                std::vector<std::string>(known.begin(), known.end())));
  }
  return keep;
}

Time scaled(std::int64_t ns, double factor) {
  const Time time = std::chrono::nanoseconds(ns);
  return factor == 1 ? time : from_us(to_us(time) * factor);
}

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

}  // namespace

WhatIf::Scale parse_scale(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  double factor = -1;
  if (equals != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, end, factor);
    if (error != std::errc() || rest != end) factor = -1;
  }
  constexpr double kMost = 1e6;
  if (equals == 0 || !(factor >= 0) || factor > kMost) {
    throw SpecError(fmt::format("--scale '{}': write NAME=FACTOR, with a factor from 0 to {}", text, kMost));
  }
  return {text.substr(0, equals), factor};
}

WhatIf::Removed parse_removed(const std::string& text) {
  const auto trimmed = [](std::string part) {
    part.erase(0, std::min(part.size(), part.find_first_not_of(' ')));
    part.erase(part.find_last_not_of(' ') + 1);
    return part;
  };
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) return {trimmed(text), ""};
  WhatIf::Removed removed{trimmed(text.substr(0, arrow)), trimmed(text.substr(arrow + 2))};
  if (removed.before.empty() || removed.after.empty()) {
    throw SpecError(fmt::format("--remove '{}': write PHASE->PHASE, or the name of a reason", text));
  }
  return removed;
}

namespace {

constexpr TaskId kNotYet = ~TaskId{0};

class GraphWriter {
 public:
  GraphWriter(const Measured& m, const WhatIf& what_if)
      : m_(m),
        release_(release_times(m)),
        factors_(m, what_if.scales),
        keep_(kept(m, what_if.removed)),
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
    for (std::size_t i = 0; i < m_.dependencies.size(); ++i) {
      const Dependency& edge = m_.dependencies[i];
      if (keep_[i] && edge.order == Order::end_to_end) held_[edge.after.index] = true;
      if (keep_[i] && edge.reason == Reason::host_wait) waits_[edge.after.index] = true;
      if (edge.reason == Reason::host_order) since_launch_ns_[edge.after.index] = edge.host_ns;
      if (!keep_[i] || edge.order != Order::part_to_start || offset_ns(edge) == 0) continue;
      cuts_[edge.before.index].push_back({offset_ns(edge)});
    }
    for (std::vector<Cut>& cuts : cuts_) {
      std::ranges::sort(cuts, {}, &Cut::at_ns);
      const auto doubles = std::ranges::unique(cuts, {}, &Cut::at_ns);
      cuts.erase(doubles.begin(), doubles.end());
    }
  }

  TaskId add(const Task& task, const Label& label, std::int64_t event, std::int64_t gap_ns) {
    event_of_.push_back(event);
    gap_ns_.push_back(gap_ns);
    return draft_.add(task, label);
  }

  void add_event(std::uint32_t i, const Pause& pause) {
    Task task;
    if (cuts_[i].empty()) task.solo = scaled(work_ns(i), factors_.of(i));
    task.delay = std::chrono::nanoseconds(pause.given_ns) + scaled(pause.gap_ns, factors_.gaps);
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
      piece.solo = scaled(until_ns - from_ns, factors_.of(i));
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

  // What no dependency says of the host's time: all that lies before its first call.
  [[nodiscard]] std::int64_t delay_ns(std::uint32_t call) const {
    const std::int64_t left = m_.trace.calls[call].start_ns - release_.call_ns[call];
    return std::max<std::int64_t>(0, left) + (waits_[call] ? 0 : since_launch_ns_[call]);
  }

  TaskId task_of_call(std::uint32_t i) {
    if (of_call_[i] == kNotYet) {
      Task task;
      task.solo = scaled(release_.latency_ns[i], factors_.host);
      task.delay = scaled(delay_ns(i), factors_.host);
      of_call_[i] = add(task, labels_.of_call(), -1, 0);
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
      const auto cut = std::ranges::find(cuts_[edge.before.index], offset_ns(edge), &Cut::at_ns);
      draft_.start_after_end(cut->piece, after);
    }
  }

  // A launch that nothing but the one before it holds has the host's time as its delay.
  void add_host_time(const Dependency& edge, TaskId before, TaskId after) {
    TaskId from = before;
    if (waits_[edge.after.index]) {
      Task task;
      task.solo = scaled(edge.host_ns, factors_.host);
      from = add(task, labels_.of_call(), -1, 0);
      draft_.start_after_end(from, after);
    }
    const bool at_start = edge.order == Order::start_to_start;
    if (from == before) {
      at_start ? draft_.start_after_start(before, after) : draft_.start_after_end(before, after);
    } else {
      at_start ? draft_.start_after_start(before, from) : draft_.start_after_end(before, from);
    }
  }

  const Measured& m_;
  Release release_;
  Factors factors_;
  std::vector<bool> keep_;
  std::vector<std::vector<Cut>> cuts_;         // by event
  std::vector<bool> held_;                     // by event: its end waits for another's
  std::vector<bool> waits_;                    // by call: the host waited before it
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
  Time first = Time::max();
  Time last = Time::min();
  for (const TaskId task : replay.of_event) {
    first = std::min(first, timeline.spans[task].start);
    last = std::max(last, timeline.spans[task].end);
  }
  return replay.of_event.empty() ? Time::zero() : last - first;
}

Time measured_span(const Trace& trace) {
  std::int64_t first = trace.gpu_events.empty() ? 0 : trace.gpu_events.front().start_ns;
  std::int64_t last = first;
  for (const GpuEvent& event : trace.gpu_events) last = std::max(last, event.end_ns);
  return std::chrono::nanoseconds(last - first);
}

// The graph of a measured trace as Graphviz and as JSON.

namespace {

std::string id_of(Node node) { return fmt::format("{}{}", node.is_call ? "c" : "k", node.index); }

std::string us(std::int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e3); }

std::vector<bool> calls_used(const Measured& m) {
  std::vector<bool> used(m.trace.calls.size(), false);
  for (const Dependency& edge : m.dependencies) {
    if (edge.before.is_call) used[edge.before.index] = true;
    if (edge.after.is_call) used[edge.after.index] = true;
  }
  return used;
}

}  // namespace

std::string to_graphviz(const Measured& m) {
  std::string out;
  out.append(kGraphvizStart).append(" rankdir=LR;\n node [shape=box];\n");
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const GpuEvent& event = m.trace.gpu_events[i];
    const std::string label = fmt::format("{}\n{}\n{} us, stream {}", kernel_name(m, i), phase_name(m, i),
                                          us(event.end_ns - event.start_ns), event.stream);
    out += fmt::format(" k{} [label={}];\n", i, json_text(label));
  }
  const std::vector<bool> used = calls_used(m);
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) out += fmt::format(" c{} [label=launch, shape=ellipse];\n", i);
  }
  for (const Dependency& edge : m.dependencies) {
    out += fmt::format(" {} -> {} [label={}];\n", id_of(edge.before), id_of(edge.after), name_of(edge.reason));
  }
  out += fmt::format("}}\n");
  return out;
}

std::string to_graph_json(const Measured& m) {
  std::string out;
  out.append(kGraphJsonStart).append("\"schema_version\": 1,\n\"nodes\": [\n");
  bool first = true;
  const auto next = [&] { out += std::exchange(first, false) ? "" : ",\n"; };
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const GpuEvent& event = m.trace.gpu_events[i];
    next();
    out += fmt::format(
        R"({{"id": "k{}", "kernel": {}, "class": "{}", "rank": {}, "stream": {}, "phase": {}, "start_us": {}, "dur_us": {}}})",
        i, json_text(m.trace.name(event)), name_of(m.meaning.classes[i]), m.trace.rank(event), event.stream,
        json_text(phase_name(m, i)), us(event.start_ns), us(event.end_ns - event.start_ns));
  }
  const std::vector<bool> used = calls_used(m);
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    next();
    out += fmt::format(R"({{"id": "c{}", "class": "host", "start_us": {}}})", i, us(m.trace.calls[i].start_ns));
  }
  out += fmt::format("\n],\n\"edges\": [\n");
  first = true;
  for (const Dependency& edge : m.dependencies) {
    next();
    out +=
        fmt::format(R"({{"from": "{}", "to": "{}", "reason": "{}", "seen": {}, "of": {}, "when": "{}"}})",
                    id_of(edge.before), id_of(edge.after), name_of(edge.reason), edge.evidence.seen, edge.evidence.of,
                    edge.order == Order::end_to_start || edge.order == Order::end_to_end ? "end" : "start");
  }
  out += fmt::format("\n]\n}}\n");
  return out;
}

}  // namespace moeline
