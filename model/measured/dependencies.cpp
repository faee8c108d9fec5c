#include "measured/dependencies.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <vector>

#include "measured/launches.hpp"

namespace moeline {

// The order in which the host made its calls, and what it waited for between them.

namespace {

constexpr std::int64_t kPause = 100'000;    // ns: longer pauses of the host may have been spent waiting for the GPU
constexpr std::int64_t kNotices = 100'000;  // ns from the end of an event until the host goes on,
constexpr int kOfPause = 4;                 // and at most a quarter of the pause

// A pause between two launches, and the kernel that the host may have waited for.
struct HostPause {
  std::uint32_t event = 0;
  std::uint32_t next_call = 0;
  bool noticed = false;  // the host went on soon after the event's end
};

// What one process did last.
struct Process {
  std::int64_t launch = kNone;  // a call
  const HostCall* synchronised = nullptr;

  // A launch while it has not is another thread's, which waits for nothing.
  [[nodiscard]] bool has_returned(const HostCall& now) const {
    return synchronised != nullptr && synchronised->end_ns <= now.start_ns;
  }
};

class HostReader {
 public:
  explicit HostReader(const Launches& launches) : l_(launches), launched_(launches.trace.calls.size(), kNone) {
    for (const std::uint32_t i : l_.meaning.order) {  // of a graph's launch the first
      const std::int32_t call = l_.trace.gpu_events[i].call;
      if (call >= 0 && launched_[static_cast<std::size_t>(call)] == kNone) {
        launched_[static_cast<std::size_t>(call)] = i;
      }
    }
  }

  std::vector<Dependency> read() {
    std::map<std::uint32_t, Process> processes;
    for (std::uint32_t i = 0; i < l_.trace.calls.size(); ++i) {
      const HostCall& now = l_.trace.calls[i];
      Process& process = processes[now.process];
      if (now.kind == HostCallKind::synchronize) process.synchronised = &now;
      if (launched_[i] == kNone) continue;
      if (process.launch != kNone) follow(process, i);
      process.launch = i;
      if (process.has_returned(now)) process.synchronised = nullptr;
    }
    add_pauses();
    return std::move(found_);
  }

 private:
  void follow(const Process& process, std::uint32_t next) {
    const auto previous_call = static_cast<std::uint32_t>(process.launch);
    found_.push_back({{previous_call, true}, {next, true}, Reason::host_order, true});
    const HostCall& previous = l_.trace.calls[previous_call];
    const HostCall& now = l_.trace.calls[next];
    if (process.has_returned(now)) return wait_for_all(*process.synchronised, next);
    const auto event = static_cast<std::uint32_t>(launched_[previous_call]);
    const std::int64_t end_ns = l_.trace.gpu_events[event].end_ns;
    const std::int64_t pause = now.start_ns - previous.end_ns;
    const bool inside = end_ns > previous.start_ns && end_ns < now.start_ns;
    if (pause <= kPause || !inside || l_.meaning.places[event].phase == kNoPhase) return;
    const std::int64_t lag = now.start_ns - end_ns;
    pauses_.push_back({event, next, lag <= kNotices && kOfPause * lag <= pause});
  }

  void wait_for_all(const HostCall& synchronised, std::uint32_t next) {
    const std::int64_t event = l_.last_ended(synchronised.end_ns, [&](std::uint32_t i) {
      return l_.process(i) == synchronised.process && l_.launched_ns(i) < synchronised.start_ns;
    });
    if (event == kNone) return;
    const bool returned_at_once = l_.trace.gpu_events[static_cast<std::size_t>(event)].end_ns < synchronised.start_ns;
    if (returned_at_once) return;  // who knows for what
    found_.push_back({{static_cast<std::uint32_t>(event), false}, {next, true}, Reason::host_wait, false});
  }

  // Where the host waited in most layers it did so in all of them, however late it was.
  void add_pauses() {
    std::map<Step, std::size_t> noticed;
    for (const HostPause& pause : pauses_) {
      if (pause.noticed) ++noticed[step_of(l_.meaning, pause.event)];
    }
    std::map<Step, std::size_t> layers = layers_with(l_.meaning, noticed);
    for (const HostPause& pause : pauses_) {
      const Step step = step_of(l_.meaning, pause.event);
      if (2 * noticed[step] <= layers[step]) continue;
      found_.push_back({{pause.event, false}, {pause.next_call, true}, Reason::host_wait, false});
    }
  }

  const Launches& l_;
  std::vector<std::int64_t> launched_;  // by call: the GPU event, or kNone
  std::vector<HostPause> pauses_;
  std::vector<Dependency> found_;
};

/// Each process of the host is taken for one program, whatever the number of its threads: backward passes are launched
/// by a thread of their own while the main one waits. A launch follows the one before it; behind a synchronising call
/// that has returned it also follows what had been launched before that call and ended last. Without such a call, a
/// long pause that ends where the kernel launched before it ends was spent waiting for it, if it did so in most layers.
std::vector<Dependency> host_order(const Launches& launches) { return HostReader(launches).read(); }

}  // namespace

// Dependencies that only the clock tells: a kernel starts, in layer after layer, just when one of another stream ends.

namespace {

constexpr std::int64_t kStoodStill = 10'000;  // ns: longer pauses of a stream have a reason
constexpr std::int64_t kJustWhen = 5'000;     // ns between the end of a kernel and the start of one that waited for it

// When everything known allows an event to start, by event.
std::vector<std::int64_t> ready_by(const Launches& l, const std::vector<Dependency>& known) {
  std::vector<std::int64_t> ready = l.ready_ns;
  for (const Dependency& edge : known) {
    if (edge.after.is_call || edge.before.is_call || edge.from_start) continue;
    std::int64_t& ns = ready[edge.after.index];
    ns = std::max(ns, l.trace.gpu_events[edge.before.index].end_ns);
  }
  return ready;
}

// The last event of another stream of the same GPU that ended just before `event` started.
std::int64_t just_ended(const Launches& l, std::uint32_t event) {
  const GpuEvent& waiter = l.trace.gpu_events[event];
  const std::int64_t found = l.last_ended(waiter.start_ns, [&](std::uint32_t i) {
    return i < event && l.stream[i] != l.stream[event] && l.trace.gpu_events[i].gpu == waiter.gpu;
  });
  if (found == kNone) return kNone;
  const std::int64_t end_ns = l.trace.gpu_events[static_cast<std::size_t>(found)].end_ns;
  return waiter.start_ns - end_ns <= kJustWhen ? found : kNone;
}

using Layers = std::map<std::pair<std::string, std::uint16_t>, std::vector<std::size_t>>;  // phases by name and GPU

// The same kernel of all layers; itself alone where it has no phase.
std::vector<std::uint32_t> alike(const Launches& l, std::uint32_t event, const Layers& layers) {
  const EventPlace& place = l.meaning.places[event];
  if (place.phase == kNoPhase) return {event};
  const TracePhase& phase = l.meaning.phases[static_cast<std::size_t>(place.phase)];
  std::vector<std::uint32_t> events;
  for (const std::size_t same : layers.at({phase.name, phase.gpu})) {
    const std::vector<std::uint32_t>& in_phase = l.in_phase[same];
    if (place.index < in_phase.size()) events.push_back(in_phase[place.index]);
  }
  return events;
}

/// Asked of kernels that stood still although everything in `known` allowed them to start.
std::vector<Dependency> start_times(const Launches& l, const std::vector<Dependency>& known) {
  Layers layers;
  for (std::size_t i = 0; i < l.meaning.phases.size(); ++i) {
    layers[{l.meaning.phases[i].name, l.meaning.phases[i].gpu}].push_back(i);
  }
  const std::vector<std::int64_t> ready = ready_by(l, known);
  std::vector<bool> asked(l.trace.gpu_events.size(), false);
  std::vector<Dependency> found;
  for (std::uint32_t i = 0; i < l.trace.gpu_events.size(); ++i) {
    if (asked[i] || l.trace.gpu_events[i].start_ns - ready[i] < kStoodStill) continue;
    const std::int64_t source = just_ended(l, i);
    if (source == kNone) continue;
    const Relative relative = relative_to(l, i, static_cast<std::uint32_t>(source), false);
    std::vector<Dependency> edges;
    Votes votes;
    for (const std::uint32_t same : alike(l, i, layers)) {
      asked[same] = true;
      const std::int64_t before = resolve(l, same, relative);
      if (before == kNone) continue;
      const bool fits = before < same && l.trace.gpu_events[static_cast<std::size_t>(before)].end_ns <=
                                             l.trace.gpu_events[same].start_ns;
      votes.add(fits);
      if (fits)
        edges.push_back({{static_cast<std::uint32_t>(before), false}, {same, false}, Reason::start_time, false});
    }
    if (votes.accept()) found.insert(found.end(), edges.begin(), edges.end());
  }
  return found;
}

Node gpu(std::int64_t event) { return {static_cast<std::uint32_t>(event), false}; }
Node call(std::int64_t index) { return {static_cast<std::uint32_t>(index), true}; }

void add_stream_order(const Launches& l, std::vector<Dependency>& found) {
  for (std::uint32_t i = 0; i < l.previous.size(); ++i) {
    const std::int64_t before = l.previous[i];
    if (before == kNone) continue;
    const auto& events = l.trace.gpu_events;
    const bool overlaps = events[static_cast<std::size_t>(before)].end_ns > events[i].start_ns;
    found.push_back({gpu(before), gpu(i), Reason::stream_order, overlaps});
  }
}

void add_launches(const Launches& l, std::vector<Dependency>& found) {
  for (std::uint32_t i = 0; i < l.trace.gpu_events.size(); ++i) {
    const GpuEvent& event = l.trace.gpu_events[i];
    if (event.call >= 0 && l.launched_ns(i) <= event.start_ns) {
      found.push_back({call(event.call), gpu(i), Reason::launch, false});
    }
  }
}

}  // namespace

const std::string& name_of(Reason reason) {
  static const std::array<std::string, kReasons> names = {"stream_order", "launch", "host_order", "host_wait",
                                                          "event_wait",   "flow",   "start_time"};
  return names[static_cast<std::size_t>(reason)];
}

std::vector<Dependency> dependencies(const Trace& trace, const Interpretation& meaning) {
  const Launches launches(trace, meaning);
  std::vector<Dependency> found;
  add_stream_order(launches, found);
  add_launches(launches, found);
  const auto add = [&](const std::vector<Dependency>& more) { found.insert(found.end(), more.begin(), more.end()); };
  add(host_order(launches));
  add(event_waits(launches));
  for (const GpuFlow& flow : trace.flows) {
    const bool overlap = trace.gpu_events[flow.from].end_ns > trace.gpu_events[flow.to].start_ns;
    found.push_back({gpu(flow.from), gpu(flow.to), Reason::flow, overlap});
  }
  add(start_times(launches, found));
  return found;
}

std::vector<std::int64_t> launch_latencies_ns(const Trace& trace) {
  std::vector<std::int64_t> leads;
  std::vector<std::int64_t> latencies(trace.calls.size(), std::numeric_limits<std::int64_t>::max());
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.call < 0) continue;
    const std::int64_t lead = event.start_ns - trace.launched_ns(event);
    if (lead < 0) continue;
    leads.push_back(lead);
    std::int64_t& own = latencies[static_cast<std::size_t>(event.call)];
    own = std::min(own, lead);
  }
  if (leads.empty()) return std::vector<std::int64_t>(trace.calls.size(), 0);
  const auto quick = leads.begin() + static_cast<std::ptrdiff_t>(leads.size() / 100);
  std::nth_element(leads.begin(), quick, leads.end());
  for (std::int64_t& latency : latencies) latency = std::min(latency, *quick);
  return latencies;
}

}  // namespace moeline
