// The phases of one rank, stream by stream.
#pragma once

#include <map>

#include "experiments/timeline_page/picture.hpp"
#include "timeline/kernel_spans.hpp"

namespace moeline {

/// Kernels of one phase that follow each other on a stream are one bar, which communicates if most of its time does.
/// `stream_names`: of streams that have one. REQUIRES: kernels of one rank, by start.
[[nodiscard]] std::vector<PictureLane> lanes_of_phases(const std::vector<KernelSpan>& kernels,
                                                       const std::map<std::uint32_t, std::string>& stream_names);

}  // namespace moeline
