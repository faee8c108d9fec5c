// What the events of a trace are: their class, their phase, their place in it.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "trace/kernel_class.hpp"
#include "trace/trace.hpp"

namespace moeline {

inline constexpr std::int32_t kNoPhase = -1;

/// One phase of one layer on one GPU of the trace.
struct TracePhase {
  std::string name;
  std::uint16_t gpu = 0;
  PhasePlace place;
};

/// Where an event stands: the same step of another layer has the same name and index.
struct EventPlace {
  std::int32_t phase = kNoPhase;  ///< index into Interpretation::phases
  std::uint32_t index = 0;        ///< position in its phase, in order of launch
};

struct Interpretation {
  std::vector<KernelMeaning> names;  ///< by name of the trace, what a kernel of that name is
  std::vector<KernelClass> classes;  ///< by event
  std::vector<EventPlace> places;    ///< by event
  std::vector<std::uint32_t> order;  ///< events in the order in which the host launched them
  std::vector<TracePhase> phases;    ///< by first launch
};

/// At least half of the events are in phases.
[[nodiscard]] bool holds_most(const Interpretation& meaning);

/// A kernel of the program, whatever the layer: phase, GPU, position in the phase. Where an event has no phase: itself.
using Step = std::tuple<std::string, std::uint16_t, std::uint32_t>;
[[nodiscard]] Step step_of(const Interpretation& meaning, std::size_t event);
/// How many layers have each of these steps.
[[nodiscard]] std::map<Step, std::size_t> layers_with(const Interpretation& meaning,
                                                      const std::map<Step, std::size_t>& steps);

/// Annotations of one name, layer and micro-batch are one phase: that of a low-latency transfer is split where other
/// work stands between issue and receive. Where an annotation does not name them (traces that are not ours), the layer
/// is its position among those of the same name that the GPU's events use, on the host and on the GPU apart, of which
/// ones that overlap in time count once. With phases in the map, annotations do not count: events in a row on one
/// stream that mean the same phase are one, an event that means none belongs to the one before it, and layers are
/// counted per phase. Without calls of the host, events count as launched in the order in which they start.
[[nodiscard]] Interpretation interpret(const Trace& trace, const KernelMap& map = {});

}  // namespace moeline
