#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "measured/edges.hpp"

namespace moeline {
namespace {

constexpr std::int64_t kStoodStill = 10'000;  // ns: longer pauses of a stream have a reason
constexpr std::int64_t kJustWhen = 5'000;     // ns between the end of a kernel and the start of one that waited for it
constexpr int kMostReadings = 16;             // of one kernel of all layers

// When everything known allows an event to start, by event.
std::vector<std::int64_t> ready_by(const Launches& l, const std::vector<Dependency>& known) {
  std::vector<std::int64_t> ready = l.ready_ns;
  for (const Dependency& edge : known) {
    if (edge.after.is_call || edge.before.is_call || edge.order != Order::end_to_start) continue;
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

// A reading of one kernel of all layers: whom it waited for.
using StartReading = std::tuple<Step, std::string, std::int64_t, std::int64_t, std::int64_t, std::uint32_t>;

StartReading start_reading(const Step& step, const Relative& r) {
  return {step, r.phase, r.layers, r.micro_batches, r.index, r.stream};
}

class StartReader {
 public:
  StartReader(const Launches& launches, const std::vector<Dependency>& known)
      : l_(launches), ready_(ready_by(launches, known)) {
    for (std::size_t i = 0; i < l_.meaning.phases.size(); ++i) {
      layers_[{l_.meaning.phases[i].name, l_.meaning.phases[i].gpu}].push_back(i);
    }
  }

  std::vector<Dependency> read() {
    for (std::uint32_t i = 0; i < l_.trace.gpu_events.size(); ++i) {
      if (l_.trace.gpu_events[i].start_ns - ready_[i] < kStoodStill) continue;
      const std::int64_t source = just_ended(l_, i);
      if (source != kNone) ask(i, static_cast<std::uint32_t>(source));
    }
    return std::move(found_);
  }

 private:
  // Layers may differ: the first waits for a gather, the others for the layer before. So each reading is asked of all
  // layers, and those that it says nothing of are asked for theirs.
  void ask(std::uint32_t event, std::uint32_t source) {
    const Step step = step_of(l_.meaning, event);
    const Relative relative = relative_to(l_, event, source, false);
    if (!asked_.insert(start_reading(step, relative)).second || ++readings_[step] > kMostReadings) return;
    std::vector<Dependency> edges;
    Votes votes;
    for (const std::uint32_t same : alike(l_, event, layers_)) {
      const std::int64_t before = resolve(l_, same, relative);
      if (before == kNone) continue;
      const bool fits = before < same && end_ns(before) <= l_.trace.gpu_events[same].start_ns;
      votes.add(fits);
      if (fits) edges.push_back({{static_cast<std::uint32_t>(before), false}, {same, false}, Reason::start_time});
    }
    if (!votes.accept()) return;
    for (Dependency& edge : edges) edge.evidence = votes.evidence();
    found_.insert(found_.end(), edges.begin(), edges.end());
  }

  [[nodiscard]] std::int64_t end_ns(std::int64_t event) const {
    return l_.trace.gpu_events[static_cast<std::size_t>(event)].end_ns;
  }

  const Launches& l_;
  std::vector<std::int64_t> ready_;
  Layers layers_;
  std::set<StartReading> asked_;
  std::map<Step, int> readings_;
  std::vector<Dependency> found_;
};

}  // namespace

std::vector<Dependency> start_times(const Launches& launches, const std::vector<Dependency>& known) {
  return StartReader(launches, known).read();
}

}  // namespace moeline
