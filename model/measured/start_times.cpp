#include "measured/start_times.hpp"

#include <algorithm>
#include <map>

namespace moeline {
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

}  // namespace

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

}  // namespace moeline
