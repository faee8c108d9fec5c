// What a rank's kernels waited for, as its trace can say it: other kernels of the same rank on other streams.
#pragma once

#include <map>
#include <vector>

#include "timeline/history.hpp"

namespace moeline {

/// Of kernels' starts and ends: `to` waited for `from`.
struct TraceEdge {
  EventId from = 0, to = 0;
};

struct TraceEdges {
  std::vector<TraceEdge> edges;  ///< by `to`
  /// Of kernels that ended when one of the edges let them: until when from their start they had worked themselves.
  std::map<TaskId, Time> work;
};

/// By rank. Starts wait for ends and starts, and ends for ends, directly or through joins; a kernel that waited for SMs
/// waited for the end that freed them. Of several on one stream the last counts, and streams say their own order. What
/// comes from other ranks or from the host is not among them. Of a timeline recorded without its changes nothing is
/// known of SMs and of own work.
[[nodiscard]] std::map<std::uint32_t, TraceEdges> trace_edges(const TaskGraph& graph, const Timeline& timeline);

}  // namespace moeline
