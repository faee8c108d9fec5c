// Timelines as an SVG file, for papers and READMEs.
#pragma once

#include <string_view>

#include "experiments/timeline_page/picture.hpp"

namespace moeline {

/// How such a file begins, and those of no other program.
inline constexpr std::string_view kSvgStart = "<svg data-program=\"moeline\" ";

/// Time counts from each picture's first bar. Equal pictures give equal bytes.
[[nodiscard]] std::string to_svg(const std::vector<Picture>& pictures);

}  // namespace moeline
