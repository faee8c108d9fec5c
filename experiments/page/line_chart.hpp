// A picture of curves over one axis, as SVG.
#pragma once

#include <string>
#include <vector>

namespace moeline {

struct ChartPoint {
  double x = 0, y = 0;
  bool is_hollow = false;
  bool is_between = false;  ///< the line passes it, unmarked
};
struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points;  ///< by x
};
struct LineChart {
  std::string x_title, y_title;
  std::vector<std::string> names{};  ///< of an axis of words: its values, at 0, 1, ...
  bool log_x = false;                ///< REQUIRES: all x above 0
  std::string hollow{};              ///< what hollow points mean
  std::vector<ChartLine> lines;
  std::vector<std::pair<double, std::string>> marks{};  ///< dashed lines at x, with a text
};

[[nodiscard]] std::string to_svg(const LineChart& chart);

}  // namespace moeline
