// A measured trace as a task graph: it replays to its own timeline, and answers what would change if one thing changed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/timeline.hpp"
#include "measured/release.hpp"

namespace moeline {

/// What to change before replaying. Times are those measured, contention included: a kernel that has more of the GPU
/// for itself after the change is not made faster.
struct WhatIf {
  struct Scale {
    std::string what;  ///< a phase; compute, transfer, barrier, dispatch, combine (by kernel); kernel:CLASS; gaps; host
    double factor = 1;
  };
  struct Removed {
    std::string before, after;  ///< phases; `after` empty: `before` is a reason
  };
  std::vector<Scale> scales;
  std::vector<Removed> removed;
};

/// "transfer=1.4"; throws SpecError.
[[nodiscard]] WhatIf::Scale parse_scale(const std::string& text);
/// "combine(B)->mlp(B)" or a reason's name; throws SpecError.
[[nodiscard]] WhatIf::Removed parse_removed(const std::string& text);

struct ReplayGraph {
  TaskGraph graph;
  std::vector<TaskId> of_event;        ///< by GPU event
  std::vector<std::int64_t> event_of;  ///< by task: the GPU event that it is, or a piece of; -1: the host's
  std::vector<std::int64_t> gap_ns;    ///< by task: what of its delay is a gap, before any change
};

/// One task per GPU event and per call that launched one. A task starts its measured time after the last thing it
/// waited for: that gap is its delay. An event in which others start (programmatic dependent launch) takes no time
/// itself, and ends with the last of the pieces that it is cut into at their starts. What it waited for SMs is left
/// out: whether two kernels meet depends on the very times that a change moves, so the replay of the unchanged trace
/// comes that much early behind such a wait. Throws SpecError, naming what there is, for a change that touches nothing.
[[nodiscard]] ReplayGraph replay_graph(const Measured& measured, const WhatIf& what_if = {});

/// First start to last end of the GPU events.
[[nodiscard]] Time gpu_span(const ReplayGraph& replay, const Timeline& timeline);
[[nodiscard]] Time measured_span(const Trace& trace);

/// How the texts below begin, and those of no other program.
inline constexpr std::string_view kGraphvizStart = "digraph moeline {\n";
inline constexpr std::string_view kGraphJsonStart = "{\n\"program\": \"moeline\",\n";

/// The graph for others' tools.
[[nodiscard]] std::string to_graphviz(const Measured& measured);
[[nodiscard]] std::string to_graph_json(const Measured& measured);

}  // namespace moeline
