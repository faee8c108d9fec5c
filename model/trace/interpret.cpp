#include "trace/interpret.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace moeline {
namespace {

std::vector<KernelMeaning> meanings_of(const Trace& trace, const KernelMap& map) {
  const KernelClassifier classify(map.classes, map.communication);
  std::vector<KernelMeaning> of_name;
  const bool as_stated = map.classes.empty() && map.communication.empty();
  for (const KernelName& kernel : trace.names) {
    if (as_stated && kernel.is_whole_phase()) {  // attn(F) holds projections, too
      of_name.push_back({KernelClass::unclassified, KnownBy::trace});
      continue;
    }
    const auto stated = as_stated ? class_named(kernel.stated_class) : std::nullopt;
    of_name.push_back(stated ? KernelMeaning{*stated, KnownBy::trace} : classify.meaning_of(kernel.name));
  }
  return of_name;
}

std::vector<KernelClass> classes_of(const Trace& trace, const std::vector<KernelMeaning>& of_name) {
  std::vector<KernelClass> classes;
  classes.reserve(trace.gpu_events.size());
  for (const GpuEvent& event : trace.gpu_events) {
    classes.push_back(event.kind == GpuEventKind::kernel ? of_name[event.name].kernel_class : KernelClass::copy);
  }
  return classes;
}

std::vector<std::uint32_t> launch_order(const Trace& trace) {
  std::vector<std::uint32_t> order(trace.gpu_events.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto launched = [&](std::uint32_t i) { return trace.launched_ns(trace.gpu_events[i]); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return launched(a) < launched(b); });
  return order;
}

// An annotation as one GPU of the trace uses it.
using Used = std::pair<std::int32_t, std::uint16_t>;

// What each annotation says of itself, else its position among those of its name, overlapping ones counted once. Ranges
// of the host, their twins on the GPU, and those of other GPUs are counted apart.
std::map<Used, PhasePlace> places_of(const Trace& trace, const std::set<Used>& used) {
  struct Seen {
    std::uint32_t count = 0;
    std::int64_t end_ns = 0;
  };
  std::map<std::tuple<std::string, bool, std::uint16_t>, Seen> seen;
  std::map<Used, PhasePlace> places;
  for (const Used& each : used) {  // by start
    const Annotation& annotation = trace.annotations[static_cast<std::size_t>(each.first)];
    if (annotation.place) {
      places[each] = *annotation.place;
      continue;
    }
    Seen& last = seen[{annotation.name, annotation.on_gpu, each.second}];
    const bool same = last.count > 0 && annotation.start_ns < last.end_ns;
    if (!same) ++last.count;
    last.end_ns = same ? std::max(last.end_ns, annotation.end_ns) : annotation.end_ns;
    places[each] = {last.count - 1, 0};
  }
  return places;
}

// Phases by what makes them one.
class PhaseTable {
 public:
  explicit PhaseTable(std::vector<TracePhase>& phases) : phases_(phases) {}
  std::int32_t find_or_add(const TracePhase& phase) {
    const auto next = static_cast<std::int32_t>(phases_.size());
    const auto [found, added] =
        known_.try_emplace({phase.name, phase.gpu, phase.place.layer, phase.place.micro_batch}, next);
    if (added) phases_.push_back(phase);
    return found->second;
  }

 private:
  std::vector<TracePhase>& phases_;
  std::map<std::tuple<std::string, std::uint16_t, std::uint32_t, std::uint32_t>, std::int32_t> known_;
};

void phases_from_annotations(const Trace& trace, Interpretation& result) {
  std::set<Used> used;
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.annotation >= 0) used.insert({event.annotation, event.gpu});
  }
  const std::map<Used, PhasePlace> places = places_of(trace, used);
  PhaseTable table(result.phases);
  std::map<Used, std::int32_t> phase_of;
  for (const std::uint32_t i : result.order) {
    const GpuEvent& event = trace.gpu_events[i];
    if (event.annotation < 0) continue;
    const Used annotation{event.annotation, event.gpu};
    const auto [known, added] = phase_of.try_emplace(annotation, kNoPhase);
    if (added) {
      const std::string& name = trace.annotations[static_cast<std::size_t>(event.annotation)].name;
      known->second = table.find_or_add({name, event.gpu, places.at(annotation)});
    }
    result.places[i].phase = known->second;
  }
}

void phases_from_map(const Trace& trace, const KernelMap& map, Interpretation& result) {
  const NameMatcher matcher(map.phases);
  std::vector<const std::string*> meaning;
  for (const KernelName& kernel : trace.names) meaning.push_back(matcher.find(kernel.name));
  struct Running {
    std::int32_t phase = kNoPhase;
    const std::string* name = nullptr;
  };
  std::map<std::pair<std::uint16_t, std::uint32_t>, Running> on_stream;
  std::map<std::pair<std::string, std::uint16_t>, std::uint32_t> layers;
  for (const std::uint32_t i : result.order) {
    const GpuEvent& event = trace.gpu_events[i];
    Running& running = on_stream[{event.gpu, event.stream}];
    const std::string* name = event.kind == GpuEventKind::kernel ? meaning[event.name] : nullptr;
    if (name != nullptr && (running.name == nullptr || *name != *running.name)) {
      const std::uint32_t layer = layers[{*name, event.gpu}]++;
      running = {static_cast<std::int32_t>(result.phases.size()), name};
      result.phases.push_back({*name, event.gpu, {layer, 0}});
    }
    result.places[i].phase = running.phase;
  }
}

void number_in_phases(Interpretation& result) {
  std::vector<std::uint32_t> count(result.phases.size(), 0);
  for (const std::uint32_t i : result.order) {
    EventPlace& place = result.places[i];
    if (place.phase != kNoPhase) place.index = count[static_cast<std::size_t>(place.phase)]++;
  }
}

}  // namespace

bool holds_most(const Interpretation& meaning) {
  const auto in_phases = std::count_if(meaning.places.begin(), meaning.places.end(),
                                       [](const EventPlace& place) { return place.phase != kNoPhase; });
  return 2 * static_cast<std::size_t>(in_phases) >= meaning.places.size() && in_phases > 0;
}

Step step_of(const Interpretation& meaning, std::size_t event) {
  const EventPlace& place = meaning.places[event];
  if (place.phase == kNoPhase) return {"", 0, static_cast<std::uint32_t>(event)};
  const TracePhase& phase = meaning.phases[static_cast<std::size_t>(place.phase)];
  return {phase.name, phase.gpu, place.index};
}

std::map<Step, std::size_t> layers_with(const Interpretation& meaning, const std::map<Step, std::size_t>& steps) {
  std::map<Step, std::size_t> layers;
  for (std::size_t i = 0; i < meaning.places.size() && !steps.empty(); ++i) {
    if (const Step step = step_of(meaning, i); steps.contains(step)) ++layers[step];
  }
  return layers;
}

Interpretation interpret(const Trace& trace, const KernelMap& map) {
  Interpretation result;
  result.names = meanings_of(trace, map);
  result.classes = classes_of(trace, result.names);
  result.order = launch_order(trace);
  result.places.resize(trace.gpu_events.size());
  if (map.phases.empty()) {
    phases_from_annotations(trace, result);
  } else {
    phases_from_map(trace, map, result);
  }
  number_in_phases(result);
  return result;
}

}  // namespace moeline
