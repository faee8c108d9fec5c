#include "measured/release.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "measured/quantile.hpp"

namespace moeline {
namespace {

// When `edge` allowed its `after` to start, as measured. A kernel that overlaps the one before it on its stream was
// allowed to when it did.
std::int64_t met_ns(const Measured& m, const Dependency& edge, const std::vector<std::int64_t>& latency_ns) {
  if (edge.after.is_call) {
    const std::int64_t before =
        edge.before.is_call ? m.trace.calls[edge.before.index].start_ns : m.trace.gpu_events[edge.before.index].end_ns;
    return before + edge.host_ns;
  }
  if (edge.before.is_call) {
    return m.trace.calls[edge.before.index].start_ns + latency_ns[edge.before.index];
  }
  const GpuEvent& before = m.trace.gpu_events[edge.before.index];
  if (edge.order == Order::part_to_start) return m.trace.gpu_events[edge.after.index].start_ns;
  return edge.order == Order::start_to_start ? before.start_ns : before.end_ns;
}

std::int64_t lead_ns(const Measured& m, std::uint32_t event) {
  return m.trace.gpu_events[event].start_ns - m.trace.launched_ns(m.trace.gpu_events[event]);
}

// Events that waited for nothing later than their launch.
std::vector<std::uint32_t> bound_by_launch(const Measured& m, const Release& release) {
  std::vector<std::uint32_t> events;
  for (std::uint32_t i = 0; i < release.binding.size(); ++i) {
    if (release.binding[i] < 0) continue;
    if (m.dependencies[static_cast<std::size_t>(release.binding[i])].reason == Reason::launch) events.push_back(i);
  }
  return events;
}

// What a launch takes until its kernel starts, where nothing else holds that up: the median.
std::int64_t usual_lead_ns(const Measured& m, const std::vector<std::uint32_t>& events) {
  std::vector<std::int64_t> leads;
  for (const std::uint32_t i : events) leads.push_back(lead_ns(m, i));
  return leads.empty() ? 0 : quantile(std::move(leads), 0.5);
}

// Of a launch of several kernels the first decides, and the others follow it.
void find_slow_launches(const Measured& m, Release& release) {
  constexpr std::int64_t kMuch = 4;
  const std::vector<std::uint32_t> events = bound_by_launch(m, release);
  const std::int64_t usual_ns = usual_lead_ns(m, events);
  std::map<std::int32_t, std::int64_t> first_lead_ns;  // by call
  for (const std::uint32_t i : events) {
    const auto [known, is_new] = first_lead_ns.try_emplace(m.trace.gpu_events[i].call, lead_ns(m, i));
    known->second = std::min(known->second, lead_ns(m, i));
  }
  for (const auto& [index, lead] : first_lead_ns) {
    const HostCall& call = m.trace.calls[static_cast<std::size_t>(index)];
    std::int64_t& latency = release.latency_ns[static_cast<std::size_t>(index)];
    if (lead - latency < kUnexplainedNs) continue;
    latency = lead <= kMuch * usual_ns ? lead : std::min(latency, call.end_ns - call.start_ns);
  }
  for (const std::uint32_t i : events) {
    const GpuEvent& event = m.trace.gpu_events[i];
    release.event_ns[i] = m.trace.launched_ns(event) + release.latency_ns[static_cast<std::size_t>(event.call)];
  }
}

bool is_persistent(const Trace& trace, const GpuEvent& event) { return event.blocks > 0 && event.blocks <= trace.sms; }

// While it stood still, persistent kernels of other streams had been given more SMs than would have left it its own,
// and one of them still ran when it started, or had just ended.
bool lacked_sms(const Trace& trace, std::uint32_t waiting, std::int64_t since_ns) {
  constexpr int kLookedAt = 1000;
  constexpr std::int64_t kJustEnded = 5'000;
  const GpuEvent& event = trace.gpu_events[waiting];
  if (!is_persistent(trace, event)) return false;
  std::uint64_t wanted = event.blocks;
  bool until_start = false;
  int looked_at = 0;
  for (std::uint32_t i = waiting; i-- > 0 && ++looked_at < kLookedAt;) {
    const GpuEvent& other = trace.gpu_events[i];
    const bool in_flight = other.start_ns <= since_ns && other.end_ns > since_ns;
    const bool beside = other.gpu == event.gpu && other.stream != event.stream;
    if (!in_flight || !beside || !is_persistent(trace, other)) continue;
    wanted += other.blocks;
    until_start = until_start || other.end_ns >= event.start_ns - kJustEnded;
  }
  return until_start && wanted > trace.sms;
}

// Waits for SMs such as fewer than half of the layers have: in the others the same kernel waited much less.
void find_chance_meetings(const Measured& m, const Release& release, std::vector<Unexplained>& waits) {
  constexpr std::int64_t kMuchLess = 4;
  std::map<Step, std::vector<std::int64_t>> waited;
  std::map<Step, std::size_t> steps;
  for (const Unexplained& wait : waits) {
    waited[step_of(m.meaning, wait.event)].push_back(wait.wait_ns);
    ++steps[step_of(m.meaning, wait.event)];
  }
  const std::map<Step, std::size_t> layers = layers_with(m.meaning, steps);
  for (Unexplained& wait : waits) {
    const Step step = step_of(m.meaning, wait.event);
    const auto alike = std::count_if(waited[step].begin(), waited[step].end(),
                                     [&](std::int64_t ns) { return kMuchLess * ns >= wait.wait_ns; });
    wait.for_sms = 2 * static_cast<std::size_t>(alike) < layers.at(step) &&
                   lacked_sms(m.trace, wait.event, release.event_ns[wait.event]);
  }
}

}  // namespace

Measured understand(Trace trace, const KernelMap& map) {
  Measured measured{std::move(trace), {}, {}};
  measured.meaning = interpret(measured.trace, map);
  measured.dependencies = dependencies(measured.trace, measured.meaning);
  return measured;
}

Release release_times(const Measured& m) {
  Release r;
  r.latency_ns = launch_latencies_ns(m.trace);
  r.event_ns.assign(m.trace.gpu_events.size(), 0);
  r.call_ns.assign(m.trace.calls.size(), 0);
  r.binding.assign(m.trace.gpu_events.size(), -1);
  r.call_binding.assign(m.trace.calls.size(), -1);
  for (std::size_t i = 0; i < m.dependencies.size(); ++i) {
    const Dependency& edge = m.dependencies[i];
    if (edge.order == Order::end_to_end) continue;
    const std::int64_t met = met_ns(m, edge, r.latency_ns);
    std::int64_t& ns = (edge.after.is_call ? r.call_ns : r.event_ns)[edge.after.index];
    std::int64_t& binding = (edge.after.is_call ? r.call_binding : r.binding)[edge.after.index];
    if (met >= ns || binding < 0) binding = static_cast<std::int64_t>(i);
    ns = std::max(ns, met);
  }
  find_slow_launches(m, r);
  return r;
}

std::vector<Unexplained> unexplained_waits(const Measured& m, const Release& release) {
  std::vector<Unexplained> waits;
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const GpuEvent& event = m.trace.gpu_events[i];
    const std::int64_t wait = event.start_ns - release.event_ns[i];
    if (release.binding[i] < 0 || wait < kUnexplainedNs) continue;  // the first event of a trace waits for nothing
    waits.push_back({i, wait, false});
  }
  find_chance_meetings(m, release, waits);
  std::stable_sort(waits.begin(), waits.end(),
                   [](const Unexplained& a, const Unexplained& b) { return a.wait_ns > b.wait_ns; });
  return waits;
}

namespace {

// The last event of each GPU so far, and the start of its first.
struct Seen {
  std::int64_t last = -1;
  std::int64_t first_start_ns = 0;
};

Pause pause_of(const Release& release, const Trace& trace, std::size_t i, const Seen& seen) {
  const GpuEvent& event = trace.gpu_events[i];
  if (release.binding[i] >= 0) {
    const std::int64_t pause = std::max<std::int64_t>(0, event.start_ns - release.event_ns[i]);
    const std::int64_t gap = std::min(pause, event.start_ns - seen.first_start_ns);
    return {pause - gap, gap, -1};
  }
  if (seen.last < 0) return {event.start_ns, 0, -1};
  return {event.start_ns - trace.gpu_events[static_cast<std::size_t>(seen.last)].start_ns, 0, seen.last};
}

}  // namespace

std::vector<Pause> pauses_of(const Measured& m, const Release& release) {
  std::vector<Seen> gpus(m.trace.gpus.size());
  std::vector<Pause> pauses;
  pauses.reserve(m.trace.gpu_events.size());
  for (std::size_t i = 0; i < m.trace.gpu_events.size(); ++i) {  // by start
    const GpuEvent& event = m.trace.gpu_events[i];
    Seen& seen = gpus[event.gpu];
    if (seen.last < 0) seen.first_start_ns = event.start_ns;
    pauses.push_back(pause_of(release, m.trace, i, seen));
    seen.last = static_cast<std::int64_t>(i);
  }
  for (const Unexplained& wait : unexplained_waits(m, release)) {
    if (wait.for_sms) pauses[wait.event] = {};
  }
  return pauses;
}

}  // namespace moeline
