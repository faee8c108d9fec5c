// A measured trace as a task graph: it replays to its own timeline, and answers what would change if one thing changed.
#pragma once

#include <vector>

#include "engine/timeline.hpp"
#include "measured/what_if.hpp"

namespace moeline {

struct ReplayGraph {
  TaskGraph graph;
  std::vector<TaskId> of_event;        ///< by GPU event
  std::vector<std::int64_t> event_of;  ///< by task: the GPU event that it is, or a piece of; -1: the host's
  /// By task: what of its delay is a gap before a kernel, or the host's time since its launch before; before any
  /// change.
  std::vector<std::int64_t> gap_ns;
};

/// One task per GPU event and per call that launched one. A task starts its measured time after the last thing it
/// waited for: that gap is its delay. An event in which others start (programmatic dependent launch) takes no time
/// itself, and ends with the last of the pieces that it is cut into at their starts. What it waited for SMs is left
/// out: whether two kernels meet depends on the very times that a change moves, so the replay of the unchanged trace
/// comes that much early behind such a wait. Throws SpecError, naming what there is, for a change that touches nothing.
[[nodiscard]] ReplayGraph replay_graph(const Measured& measured, const WhatIf& what_if = {});

/// From the start of the event that started first, as measured, to the last end of all. What a change lets start before
/// it does not count: the trace begins where it does.
[[nodiscard]] Time gpu_span(const ReplayGraph& replay, const Timeline& timeline);
[[nodiscard]] Time measured_span(const Trace& trace);

/// Spans of one trace under many changes of its times: what replay_graph and simulate give, by a pass over one graph.
/// REQUIRES: `measured` outlives it.
class ReplaySpans {
 public:
  explicit ReplaySpans(const Measured& measured);
  [[nodiscard]] Time operator()(const std::vector<WhatIf::Scale>& scales) const;

 private:
  [[nodiscard]] std::vector<Time> times(const ScaleFactors& factors) const;

  const Measured& m_;
  ReplayGraph replay_;
  std::vector<EventId> order_;
};

}  // namespace moeline
