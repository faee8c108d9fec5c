// The numbers that HolisticTraceAnalysis (HTA) prints of a trace, by the rules of its temporal breakdown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measured/breakdown.hpp"

namespace moeline {

/// What HTA counts of one rank. Communication is what begins with nccl or has ncclKernel in its name, so that DeepEP's
/// kernels are compute. Where a file names two or more profiler steps (ProfilerStep#N), HTA leaves out by default what
/// was launched after the last of them had begun (on the host or, by its twin, on the GPU, whichever is later), and
/// what has no launch in the trace. Of fewer profiler steps, and of a part of a trace, everything is counted. All
/// streams count, stream 0 among them: ROCm's default stream, and CUDA's. The rules are those of versions 0.5.0 to
/// 0.6.1 (hta/common/trace_filter.py: GPUKernelFilter takes stream >= 0; hta/common/trace.py:
/// _filter_irrelevant_gpu_kernels).
struct HtaBreakdown {
  Breakdown times;
  std::size_t profiler_steps = 0;                    ///< of the file
  std::size_t events = 0;                            ///< counted
  std::size_t in_last_step = 0, without_launch = 0;  ///< left out, each for the first reason it has
  [[nodiscard]] std::size_t left_out() const { return in_last_step + without_launch; }
};

/// Of the events of one rank, by index.
[[nodiscard]] HtaBreakdown hta_breakdown(const Trace& trace, const std::vector<std::uint32_t>& events);

}  // namespace moeline
