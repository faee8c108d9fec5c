// The numbers that HolisticTraceAnalysis (HTA) prints of a trace, by the rules of its temporal breakdown.
#pragma once

#include <vector>

#include "measured/breakdown.hpp"

namespace moeline {

/// What HTA counts of one rank. Communication is what begins with nccl or has ncclKernel in its name, so that DeepEP's
/// kernels are compute. Where a file names two or more profiler steps (ProfilerStep#N), HTA leaves out by default what
/// was launched after the last of them had begun (on the host or, by its twin, on the GPU, whichever is later), what
/// has no launch in the trace, and stream 0. Of fewer profiler steps, and of a part of a trace, everything is counted.
struct HtaBreakdown {
  Breakdown times;
  std::size_t profiler_steps = 0;                                     ///< of the file
  std::size_t events = 0;                                             ///< counted
  std::size_t in_last_step = 0, without_launch = 0, on_stream_0 = 0;  ///< left out, each for the first reason it has
  [[nodiscard]] std::size_t left_out() const { return in_last_step + without_launch + on_stream_0; }
};

/// Of the events of one rank, by index.
[[nodiscard]] HtaBreakdown hta_breakdown(const Trace& trace, const std::vector<std::uint32_t>& events);

}  // namespace moeline
