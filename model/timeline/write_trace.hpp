// A timeline as a trace that opens beside a measured one: Kineto's dialect of the Chrome trace, as Perfetto,
// chrome://tracing and HolisticTraceAnalysis (HTA) load it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "timeline/trace_edges.hpp"

namespace moeline {

/// The line behind distributedInfo by which our traces are told from those of others.
inline constexpr std::string_view kTraceMark = "\"program\": \"moeline\",\n";

/// A track of its own on the GPU: what a reader of the timeline knows and the graph does not.
struct TraceTrack {
  struct Slice {
    Time start{}, end{};
    std::string name;
    std::uint32_t micro_batch = 0, chunk = 0;
  };
  std::uint32_t id = 0;  ///< of its thread: none of a stream
  std::string name;
  std::vector<Slice> slices;  ///< in order; where two overlap, the second is shown from the end of the first
};

/// A value over time.
struct TraceCounter {
  std::string name;
  std::vector<std::pair<Time, double>> values;
};

/// What a kernel does together with other ranks, in the words of PyTorch's metadata of NCCL's kernels.
struct TraceMeeting {
  std::string collective;  ///< "allreduce", "all_to_all", ...
  std::string group;       ///< its name, the same on all of its ranks and on no others
  std::string ranks;       ///< "[0, 1, 2]"; empty: the traces have no numbers for them
  int size = 0;            ///< ranks of the group
};

struct TraceOptions {
  std::uint32_t world_size = 1;
  std::string device_name;
  std::string scenario{};     ///< what was simulated, as text; empty: not stated
  bool hta_names = false;     ///< prefix communication kernels with "ncclKernel_", which HTA looks for
  bool graph_launch = false;  ///< one launch for all kernels, as of a CUDA graph
  /// One slice for each phase on a stream, instead of its kernels, launches and counters. Its class is that of its
  /// communication, or kWholePhase (trace.hpp) where it computes.
  bool phases_only = false;
  std::vector<TraceTrack> tracks{};
  std::vector<TraceCounter> counters{};
  std::function<std::string(TaskId)> detail{};                   ///< of a kernel; by default that of its label
  std::function<std::optional<TraceMeeting>(TaskId)> meeting{};  ///< of a kernel; nothing: it meets no other rank
  TraceEdges edges{};     ///< of this rank: flows that say what its kernels waited for
  bool whole_us = false;  ///< round times to whole us: HTA rounds fractions inwards
};

/// The trace of one rank. Host tasks with "launch" in their name launch the kernels they release; for other kernels the
/// host is taken to run ahead. REQUIRES: a timeline recorded with its changes, for the counters of what kernels take.
[[nodiscard]] std::string trace_of_rank(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank,
                                        const TraceOptions& options);

}  // namespace moeline
