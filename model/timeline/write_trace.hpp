// A timeline as a trace that opens beside a measured one: Kineto's dialect of the Chrome trace, as Perfetto,
// chrome://tracing and HolisticTraceAnalysis (HTA) load it.
#pragma once

#include <string>

#include "engine/timeline.hpp"

namespace moeline {

struct TraceOptions {
  std::uint32_t world_size = 1;
  std::string device_name;
  bool hta_names = false;     ///< prefix communication kernels with "ncclKernel_", which HTA looks for
  bool graph_launch = false;  ///< one launch for all kernels, as of a CUDA graph
  bool whole_us = false;      ///< round times to whole us: HTA rounds fractions inwards
};

/// The trace of one rank. Host tasks with "launch" in their name launch the kernels they release; for other kernels the
/// host is taken to run ahead. REQUIRES: a timeline recorded with its changes, for the counters.
[[nodiscard]] std::string trace_of_rank(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank,
                                        const TraceOptions& options);

}  // namespace moeline
