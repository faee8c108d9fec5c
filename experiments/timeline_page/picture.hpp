// A timeline as a picture shows it: bars on lanes, without reasons.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"

namespace moeline {

struct PictureBar {
  std::string label, title;  ///< inside the bar where it fits, on two lines at most; of a tooltip
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

}  // namespace moeline
