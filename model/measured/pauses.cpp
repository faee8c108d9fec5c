#include "measured/pauses.hpp"

#include <algorithm>

namespace moeline {
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
