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
    if (what == "transfer") return is_communication(c) && c != KernelClass::barrier;
    if (what == "barrier" || what == "dispatch" || what == "combine") return name_of(c) == what;
    if (what.starts_with(kKernelPrefix)) return name_of(c) == what.substr(std::string_view(kKernelPrefix).size());
    return phase_of(m_, {event, false}) == what;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    std::vector<std::string> names = {"transfer", "barrier", "dispatch", "combine", "gaps", "host"};
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
  Label of_call() { return of_host("launch"); }
  Label of_part() { return of_host("part of a kernel that another overlaps"); }

 private:
  Label of_host(const char* name) {
    Label label;
    label.name = draft_.intern(name);
    label.task_class = draft_.add_class("host", Role::host);
    label.stream = host_;
    label.phase = no_phase_;
    return label;
  }
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

ReplayGraph replay_graph(const Measured& m, const WhatIf& what_if) {
  const Release release = release_times(m);
  const std::vector<Pause> pauses = pauses_of(m, release);
  const Factors factors(m, what_if.scales);
  const std::vector<bool> keep = kept(m, what_if.removed);
  const std::vector<std::int64_t> latency = launch_latencies_ns(m.trace);
  TaskGraphDraft draft;
  draft.reserve(m.trace.gpu_events.size() + m.trace.calls.size(), m.dependencies.size());
  Labels labels(m, draft);
  std::vector<TaskId> of_event;
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const GpuEvent& event = m.trace.gpu_events[i];
    Task task;
    task.solo = scaled(event.end_ns - event.start_ns, factors.of(i));
    task.delay = std::chrono::nanoseconds(pauses[i].given_ns) + scaled(pauses[i].gap_ns, factors.gaps);
    of_event.push_back(draft.add(task, labels.of_event(i)));
    if (const std::int64_t anchor = pauses[i].anchor; anchor >= 0) {
      draft.start_after_start(of_event[static_cast<std::size_t>(anchor)], of_event.back());
    }
  }
  std::vector<TaskId> of_call(m.trace.calls.size(), ~TaskId{0});
  const auto task_of_call = [&](std::uint32_t i) {
    if (of_call[i] == ~TaskId{0}) {
      Task task;
      task.solo = scaled(latency[i], factors.host);
      task.delay = scaled(std::max<std::int64_t>(0, m.trace.calls[i].start_ns - release.call_ns[i]), factors.host);
      of_call[i] = draft.add(task, labels.of_call());
    }
    return of_call[i];
  };
  for (std::size_t i = 0; i < m.dependencies.size(); ++i) {
    const Dependency& edge = m.dependencies[i];
    if (!keep[i]) continue;
    const TaskId before = edge.before.is_call ? task_of_call(edge.before.index) : of_event[edge.before.index];
    const TaskId after = edge.after.is_call ? task_of_call(edge.after.index) : of_event[edge.after.index];
    if (!edge.from_start) {
      draft.start_after_end(before, after);
    } else if (edge.before.is_call) {
      draft.start_after_start(before, after);
    } else {  // `after` starts as far into `before` as it did
      Task part;
      part.solo = scaled(m.trace.gpu_events[edge.after.index].start_ns - m.trace.gpu_events[edge.before.index].start_ns,
                         factors.of(edge.before.index));
      const TaskId reached = draft.add(part, labels.of_part());
      draft.start_after_start(before, reached);
      draft.start_after_end(reached, after);
    }
  }
  return {TaskGraph(std::move(draft)), std::move(of_event)};
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
    out += fmt::format(R"({{"from": "{}", "to": "{}", "reason": "{}", "when": "{}"}})", id_of(edge.before),
                       id_of(edge.after), name_of(edge.reason), edge.from_start ? "start" : "end");
  }
  out += fmt::format("\n]\n}}\n");
  return out;
}

}  // namespace moeline
