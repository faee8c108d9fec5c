// A timeline as a picture: phases on their streams, or slots of a pipeline, for papers and READMEs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "timeline/kernel_spans.hpp"

namespace moeline {

struct PictureBar {
  std::string label, title;  ///< inside the bar where it fits; of a tooltip
  std::string phase;         ///< gives the colour
  std::uint32_t micro_batch = 0;
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
};

/// Kernels of one phase that follow each other on a stream are one bar, which communicates if most of its time does.
/// `stream_names`: of streams that have one. REQUIRES: kernels of one rank, by start.
[[nodiscard]] std::vector<PictureLane> lanes_of_phases(const std::vector<KernelSpan>& kernels,
                                                       const std::map<std::uint32_t, std::string>& stream_names);

/// How such a file begins, and those of no other program.
inline constexpr std::string_view kSvgStart = "<svg data-program=\"moeline\" ";

/// Time counts from each picture's first bar. Equal pictures give equal bytes.
[[nodiscard]] std::string to_svg(const std::vector<Picture>& pictures);

}  // namespace moeline
