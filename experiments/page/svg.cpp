#include "experiments/page/svg.hpp"

#include <cmath>

#include "base/text.hpp"

namespace moeline {

std::string as_xml(std::string_view text) {
  std::string escaped;
  for (const char c : as_utf8(text)) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (static_cast<unsigned char>(c) < ' ') {
      escaped += ' ';  // XML knows no other way
    } else {
      escaped += c;
    }
  }
  return escaped;
}

double svg_text_width(std::string_view text, double size) {
  constexpr double kFontWidth = 0.56;  // of a letter, over its size
  return kFontWidth * size * static_cast<double>(text.size());
}

double svg_tick_step(double span, double most_ticks) {
  const double least = span / most_ticks;
  const double decade = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= least) return factor * decade;
  }
  return 10 * decade;
}

}  // namespace moeline
