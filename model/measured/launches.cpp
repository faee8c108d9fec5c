#include "measured/launches.hpp"

#include <algorithm>

#include "measured/edges.hpp"

namespace moeline {

Launches::Launches(const Trace& of_trace, const Interpretation& its_meaning) : trace(of_trace), meaning(its_meaning) {
  const auto events = static_cast<std::uint32_t>(trace.gpu_events.size());
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint32_t> numbers;
  stream.resize(events);
  for (std::uint32_t i = 0; i < events; ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    const auto next = static_cast<std::uint32_t>(numbers.size());
    stream[i] = numbers.try_emplace({event.gpu, event.stream}, next).first->second;
    if (stream[i] == on_stream.size()) on_stream.emplace_back();
    on_stream[stream[i]].push_back(i);
  }
  const std::vector<std::int64_t> latency_ns = launch_latencies_ns(trace);
  ready_ns.resize(events);
  for (std::uint32_t i = 0; i < events; ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    const std::int64_t ready = event.call < 0 ? 0 : launched_ns(i) + latency_ns[static_cast<std::size_t>(event.call)];
    ready_ns[i] = std::min(ready, event.start_ns);
  }
  fifo = stream_order(trace);
  for (const Dependency& edge : fifo) {
    const GpuEvent& before = trace.gpu_events[edge.before.index];
    std::int64_t& ready = ready_ns[edge.after.index];
    ready = std::max(ready,
                     edge.order == Order::part_to_start ? trace.gpu_events[edge.after.index].start_ns : before.end_ns);
  }
  by_end.resize(events);
  for (std::uint32_t i = 0; i < events; ++i) by_end[i] = i;
  std::stable_sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.gpu_events[a].end_ns < trace.gpu_events[b].end_ns;
  });
  in_phase.resize(meaning.phases.size());
  for (const std::uint32_t i : meaning.order) {
    if (meaning.places[i].phase != kNoPhase) in_phase[static_cast<std::size_t>(meaning.places[i].phase)].push_back(i);
  }
  for (std::size_t i = 0; i < meaning.phases.size(); ++i) {
    const TracePhase& phase = meaning.phases[i];
    phases_.try_emplace({phase.name, phase.gpu, phase.place.layer, phase.place.micro_batch}, i);
  }
}

std::uint32_t Launches::process(std::uint32_t i) const {
  const GpuEvent& event = trace.gpu_events[i];
  return event.call < 0 ? 0 : trace.calls[static_cast<std::size_t>(event.call)].process;
}

std::int64_t Launches::phase_beside(std::int64_t phase, const std::string& name, std::int64_t layers,
                                    std::int64_t micro_batches) const {
  const TracePhase& here = meaning.phases[static_cast<std::size_t>(phase)];
  const auto found = phases_.find(
      {name, here.gpu, std::int64_t{here.place.layer} + layers, std::int64_t{here.place.micro_batch} + micro_batches});
  return found == phases_.end() ? kNone : found->second;
}

Relative relative_to(const Launches& launches, std::uint32_t from, std::uint32_t event, bool last) {
  const EventPlace& here = launches.meaning.places[from];
  const EventPlace& there = launches.meaning.places[event];
  Relative relative;
  relative.stream = launches.stream[event];
  relative.index = event;
  if (here.phase == kNoPhase || there.phase == kNoPhase) return relative;
  const TracePhase& from_phase = launches.meaning.phases[static_cast<std::size_t>(here.phase)];
  const TracePhase& to_phase = launches.meaning.phases[static_cast<std::size_t>(there.phase)];
  relative.phase = to_phase.name;
  relative.layers = std::int64_t{to_phase.place.layer} - from_phase.place.layer;
  relative.micro_batches = std::int64_t{to_phase.place.micro_batch} - from_phase.place.micro_batch;
  relative.index = last ? kNone : std::int64_t{there.index};
  return relative;
}

std::int64_t resolve(const Launches& launches, std::uint32_t from, const Relative& relative) {
  if (relative.phase.empty()) return relative.index;
  const std::int32_t here = launches.meaning.places[from].phase;
  if (here == kNoPhase) return kNone;
  const std::int64_t phase = launches.phase_beside(here, relative.phase, relative.layers, relative.micro_batches);
  if (phase == kNone) return kNone;
  const std::vector<std::uint32_t>& events = launches.in_phase[static_cast<std::size_t>(phase)];
  if (relative.index != kNone) {
    const bool there = relative.index < static_cast<std::int64_t>(events.size());
    const std::int64_t event = there ? events[static_cast<std::size_t>(relative.index)] : kNone;
    return event != kNone && launches.stream[static_cast<std::size_t>(event)] == relative.stream ? event : kNone;
  }
  const auto last = std::find_if(events.rbegin(), events.rend(),
                                 [&](std::uint32_t event) { return launches.stream[event] == relative.stream; });
  return last == events.rend() ? kNone : std::int64_t{*last};
}

}  // namespace moeline
