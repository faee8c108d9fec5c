#include "measured/dependencies.hpp"

#include <algorithm>
#include <array>

#include "measured/event_waits.hpp"
#include "measured/launches.hpp"

namespace moeline {
namespace {

constexpr std::int64_t kStoodStill = 10'000;  // ns: longer pauses of a stream have a reason
constexpr std::int64_t kJustWhen = 5'000;     // ns between the end of a kernel and the start of one that waited for it
constexpr std::int64_t kHostPause = 100'000;  // ns: longer pauses of the host may have been spent waiting for the GPU
constexpr std::int64_t kHostNotices = 100'000;  // ns from the end of an event until the host goes on

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

// The GPU event that each call launched, or kNone; of a graph's launch the first.
std::vector<std::int64_t> launched_by(const Launches& l) {
  std::vector<std::int64_t> event(l.trace.calls.size(), kNone);
  for (const std::uint32_t i : l.meaning.order) {
    const std::int32_t its_call = l.trace.gpu_events[i].call;
    if (its_call >= 0 && event[static_cast<std::size_t>(its_call)] == kNone)
      event[static_cast<std::size_t>(its_call)] = i;
  }
  return event;
}

// The last event of any stream that had ended when a call that waits for the GPU returned.
std::int64_t last_ended(const Launches& l, std::int64_t by_ns, std::int64_t launched_before_ns) {
  std::int64_t last = kNone;
  for (const std::vector<std::uint32_t>& events : l.on_stream) {
    const auto after = std::partition_point(events.begin(), events.end(), [&](std::uint32_t i) {
      return l.trace.gpu_events[i].end_ns <= by_ns && l.launched_ns(i) < launched_before_ns;
    });
    if (after == events.begin()) continue;
    const std::uint32_t candidate = *std::prev(after);
    if (last == kNone ||
        l.trace.gpu_events[candidate].end_ns > l.trace.gpu_events[static_cast<std::size_t>(last)].end_ns)
      last = candidate;
  }
  return last;
}

// A pause of the host between two launches, and what it may have waited for.
struct Pause {
  std::int64_t event = kNone;
  std::int64_t next_call = kNone;
  bool called = false;   // by a synchronising call
  bool noticed = false;  // the host went on soon after the event's end
};

// The host is taken for one program, whatever the number of its threads: backward passes are launched by a thread of
// their own while the main one waits.
std::vector<Pause> add_host_order(const Launches& l, std::vector<Dependency>& found) {
  const std::vector<std::int64_t> launched = launched_by(l);
  std::vector<Pause> pauses;
  std::int64_t before = kNone;  // the launch before
  const HostCall* synchronised = nullptr;
  for (std::size_t i = 0; i < l.trace.calls.size(); ++i) {
    const HostCall& now = l.trace.calls[i];
    if (now.kind == HostCallKind::synchronize) synchronised = &now;
    if (launched[i] == kNone) continue;
    const auto next = static_cast<std::int64_t>(i);
    if (before != kNone) {
      found.push_back({call(before), call(next), Reason::host_order, true});
      const HostCall& previous = l.trace.calls[static_cast<std::size_t>(before)];
      const bool called = synchronised != nullptr && synchronised->start_ns >= previous.start_ns;
      const std::int64_t waited_for = called ? last_ended(l, synchronised->end_ns, synchronised->start_ns)
                                             : launched[static_cast<std::size_t>(before)];
      const std::int64_t end_ns =
          waited_for == kNone ? 0 : l.trace.gpu_events[static_cast<std::size_t>(waited_for)].end_ns;
      const bool paused = now.start_ns - previous.end_ns > kHostPause;
      const bool inside = end_ns > previous.start_ns && end_ns < now.start_ns;
      const bool noticed = now.start_ns - end_ns <= kHostNotices;
      if (waited_for != kNone && paused && inside) pauses.push_back({waited_for, next, called, noticed});
    }
    before = next;
    synchronised = nullptr;
  }
  return pauses;
}

// A pause without a synchronising call counts where it follows the same kernel in most layers; then in all of them,
// however late the host was.
void add_host(const Launches& l, std::vector<Dependency>& found) {
  const std::vector<Pause> pauses = add_host_order(l, found);
  std::map<Step, std::size_t> paused;
  const auto step = [&](const Pause& pause) { return step_of(l.meaning, static_cast<std::size_t>(pause.event)); };
  for (const Pause& pause : pauses) {
    if (pause.noticed) ++paused[step(pause)];
  }
  std::map<Step, std::size_t> layers = layers_with(l.meaning, paused);
  for (const Pause& pause : pauses) {
    if (!pause.called && 2 * paused[step(pause)] <= layers[step(pause)]) continue;
    found.push_back({gpu(pause.event), call(pause.next_call), Reason::host_wait, false});
  }
}

// The last event of another stream of the same GPU that ended just before `event` started.
std::int64_t just_ended(const Launches& l, std::uint32_t event) {
  const GpuEvent& waiter = l.trace.gpu_events[event];
  std::int64_t found = kNone;
  for (std::uint32_t stream = 0; stream < l.on_stream.size(); ++stream) {
    const std::vector<std::uint32_t>& events = l.on_stream[stream];
    if (stream == l.stream[event] || l.trace.gpu_events[events.front()].gpu != waiter.gpu) continue;
    const auto after = std::partition_point(
        events.begin(), events.end(), [&](std::uint32_t i) { return l.trace.gpu_events[i].end_ns <= waiter.start_ns; });
    if (after == events.begin()) continue;
    const std::uint32_t candidate = *std::prev(after);
    const std::int64_t end = l.trace.gpu_events[candidate].end_ns;
    const bool recent = candidate < event && end <= waiter.start_ns && waiter.start_ns - end <= kJustWhen;
    if (recent && (found == kNone || end > l.trace.gpu_events[static_cast<std::size_t>(found)].end_ns))
      found = candidate;
  }
  return found;
}

// The same kernel of all layers; itself alone where it has no phase.
std::vector<std::uint32_t> alike(
    const Launches& l, std::uint32_t event,
    const std::map<std::pair<std::string, std::uint16_t>, std::vector<std::size_t>>& named) {
  const EventPlace& place = l.meaning.places[event];
  if (place.phase == kNoPhase) return {event};
  const TracePhase& phase = l.meaning.phases[static_cast<std::size_t>(place.phase)];
  std::vector<std::uint32_t> events;
  for (const std::size_t same : named.at({phase.name, phase.gpu})) {
    const std::vector<std::uint32_t>& in_phase = l.in_phase[same];
    if (place.index < in_phase.size()) events.push_back(in_phase[place.index]);
  }
  return events;
}

// When everything known so far allows an event to start, by event.
std::vector<std::int64_t> ready_by(const Launches& l, const std::vector<Dependency>& found) {
  std::vector<std::int64_t> ready = l.ready_ns;
  for (const Dependency& edge : found) {
    if (edge.after.is_call || edge.before.is_call) continue;
    const GpuEvent& before = l.trace.gpu_events[edge.before.index];
    std::int64_t& ns = ready[edge.after.index];
    ns = std::max(ns, edge.from_start ? before.start_ns : before.end_ns);
  }
  return ready;
}

void add_start_times(const Launches& l, std::vector<Dependency>& found) {
  std::map<std::pair<std::string, std::uint16_t>, std::vector<std::size_t>> named;
  for (std::size_t i = 0; i < l.meaning.phases.size(); ++i) {
    named[{l.meaning.phases[i].name, l.meaning.phases[i].gpu}].push_back(i);
  }
  const std::vector<std::int64_t> ready = ready_by(l, found);
  std::vector<bool> asked(l.trace.gpu_events.size(), false);
  for (std::uint32_t i = 0; i < l.trace.gpu_events.size(); ++i) {
    if (asked[i] || l.trace.gpu_events[i].start_ns - ready[i] < kStoodStill) continue;
    const std::int64_t source = just_ended(l, i);
    if (source == kNone) continue;
    const Relative relative = relative_to(l, i, static_cast<std::uint32_t>(source), false);
    std::vector<Dependency> edges;
    bool refuted = false;
    for (const std::uint32_t same : alike(l, i, named)) {
      const std::int64_t before = resolve(l, same, relative);
      if (before == kNone) continue;
      const GpuEvent& b = l.trace.gpu_events[static_cast<std::size_t>(before)];
      refuted = refuted || before >= same || b.end_ns > l.trace.gpu_events[same].start_ns;
      edges.push_back({gpu(before), gpu(same), Reason::start_time, false});
    }
    if (refuted) continue;
    for (const Dependency& edge : edges) asked[edge.after.index] = true;
    found.insert(found.end(), edges.begin(), edges.end());
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
  add_host(launches, found);
  const std::vector<Dependency> waits = event_waits(launches);
  found.insert(found.end(), waits.begin(), waits.end());
  for (const GpuFlow& flow : trace.flows) {
    const bool overlap = trace.gpu_events[flow.from].end_ns > trace.gpu_events[flow.to].start_ns;
    found.push_back({gpu(flow.from), gpu(flow.to), Reason::flow, overlap});
  }
  add_start_times(launches, found);
  return found;
}

std::int64_t launch_latency_ns(const Trace& trace) {
  std::int64_t latency = 0;
  bool any = false;
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.call < 0) continue;
    const std::int64_t lead = event.start_ns - trace.calls[static_cast<std::size_t>(event.call)].start_ns;
    if (lead < 0) continue;
    latency = any ? std::min(latency, lead) : lead;
    any = true;
  }
  return latency;
}

}  // namespace moeline
