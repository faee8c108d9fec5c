// What all our SVG pictures share.
#pragma once

#include <string>
#include <string_view>

namespace moeline {

/// How every picture that moeline wrote begins.
inline constexpr std::string_view kSvgStart = "<svg data-program=\"moeline\" ";

/// A text between tags or in an attribute.
[[nodiscard]] std::string as_xml(std::string_view text);
/// Of a sans-serif font, about; pixels.
[[nodiscard]] double svg_text_width(std::string_view text, double size);
/// 1, 2 or 5 times a power of ten, so that a span has that many steps at most. REQUIRES: it is above 0.
[[nodiscard]] double svg_tick_step(double span, double most_ticks);

}  // namespace moeline
