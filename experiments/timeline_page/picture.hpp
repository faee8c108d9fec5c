// A timeline as a picture shows it: bars on lanes, without reasons.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "experiments/timeline_page/tint.hpp"

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

}  // namespace moeline
