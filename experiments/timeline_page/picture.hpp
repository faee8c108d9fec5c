// A timeline as a picture shows it: bars on lanes, without reasons.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "experiments/timeline_page/tint.hpp"
#include "timeline/kernel_spans.hpp"

namespace moeline {

struct PictureBar {
  std::string label, title;  ///< inside the bar where it fits, on two lines at most; of a tooltip
  Tint tint = Tint::none;
  bool communicates = false;
  Time start{}, end{};
};

struct PictureLane {
  std::string name;
  std::vector<PictureBar> bars;
};

/// One timeline; several stand below each other on one scale.
struct Picture {
  std::string name;
  std::vector<PictureLane> lanes;
  std::vector<std::pair<Tint, std::string>> legend{};  ///< empty: that of passes and micro-batches
};

// The phases of one rank, stream by stream.

/// Kernels of one phase that follow each other on a stream are one bar, which communicates if most of its time does.
/// `stream_names`: of streams that have one. REQUIRES: kernels of one rank, by start.
[[nodiscard]] std::vector<PictureLane> lanes_of_phases(const std::vector<KernelSpan>& kernels,
                                                       const std::map<std::uint32_t, std::string>& stream_names);

}  // namespace moeline
