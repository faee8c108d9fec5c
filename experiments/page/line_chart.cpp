#include "experiments/page/line_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "experiments/page/svg.hpp"

namespace moeline {
namespace {

// In pixels.
constexpr double kWidth = 820, kHeight = 420, kLeft = 78, kRight = 24, kBottom = 52, kSize = 12, kRow = 20, kKey = 26;
constexpr std::array kColours = {"#2a5db0", "#d9730d", "#2e8b57", "#b03060",
                                 "#6a51a3", "#8c6d31", "#17859b", "#636363"};

class ChartDrawing {
 public:
  explicit ChartDrawing(const LineChart& chart) : chart_(chart) {
    place_legend();
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& point : line.points) {
        low_ = std::min(low_, place(point.x));
        high_ = std::max(high_, place(point.x));
        least = std::min(least, point.y);
        most = std::max(most, point.y);
      }
    }
    if (low_ > high_) low_ = high_ = 0;
    if (low_ == high_) high_ = low_ + 1;
    constexpr double kWide = 8;  // a crossing of small values would not be seen
    log_y_ = least > 0 && most > kWide * least;
    ticks_ = log_y_ ? log_ticks(least, most) : even_ticks(most > 0 ? most : 1);
  }

  std::string draw() {
    draw_grid();
    for (std::size_t i = 0; i < chart_.marks.size(); ++i) draw_mark(chart_.marks[i].first, chart_.marks[i].second, i);
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) draw_line(chart_.lines[i], kColours.at(i % kColours.size()));
    draw_legend();
    return fmt::format(
        "{}xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
        kSvgStart, kWidth, kHeight, kWidth, kHeight, body_);
  }

 private:
  [[nodiscard]] double place(double x) const { return chart_.log_x ? std::log2(x) : x; }
  [[nodiscard]] double x_of(double x) const {
    return kLeft + (place(x) - low_) / (high_ - low_) * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double y_of(double y) const {
    const double bottom = height(ticks_.front()), top = height(ticks_.back());
    return kHeight - kBottom - (height(y) - bottom) / (top - bottom) * (kHeight - top_ - kBottom);
  }
  [[nodiscard]] double height(double y) const { return log_y_ ? std::log10(y) : y; }
  [[nodiscard]] double bottom() const { return kHeight - kBottom; }

  static std::vector<double> even_ticks(double most) {
    constexpr double kMostTicks = 6;
    const double step = svg_tick_step(most, kMostTicks);
    std::vector<double> ticks = {0};
    while (ticks.back() < most) ticks.push_back(step * static_cast<double>(ticks.size()));
    return ticks;
  }
  // 1, 2 and 5 times powers of ten, from the last below to the first above.
  static std::vector<double> log_ticks(double least, double most) {
    std::vector<double> ticks;
    for (double decade = std::pow(10, std::floor(std::log10(least))); ticks.empty() || ticks.back() < most;
         decade *= 10) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double tick = factor * decade;
        if (tick <= least) ticks.clear();
        if (ticks.empty() || ticks.back() < most) ticks.push_back(tick);
      }
    }
    return ticks;
  }

  void text(double x, double y, const std::string& attributes, const std::string& what) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" {}>{}</text>\n", x, y, kSize, attributes,
                         as_xml(what));
  }

  void draw_grid() {
    for (const double y : ticks_) {
      body_ += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"{}\"/>\n", kLeft, y_of(y), kWidth - kRight,
                           y == ticks_.front() ? "#555" : "#ddd");
      text(kLeft - 8, y_of(y) + 4, "text-anchor=\"end\"", fmt::format("{:g}", y));
    }
    std::set<double> xs;
    for (const ChartLine& line : chart_.lines) {
      for (const ChartPoint& point : line.points) {
        if (!point.is_between) xs.insert(point.x);
      }
    }
    double last = -kWidth;
    for (const double x : xs) {
      const std::string label =
          chart_.names.empty() ? fmt::format("{:g}", x) : chart_.names.at(static_cast<std::size_t>(x));
      const double width = svg_text_width(label, kSize) + 10;
      if (x_of(x) - last < width) continue;
      last = x_of(x);
      body_ += fmt::format("<path d=\"M{:.1f} {:.1f}v5\" stroke=\"#555\"/>\n", last, bottom());
      text(last, bottom() + 19, "text-anchor=\"middle\"", label);
    }
    text((kLeft + kWidth - kRight) / 2, kHeight - 10, "text-anchor=\"middle\"",
         chart_.x_title + (chart_.log_x ? " (log scale)" : ""));
    text(16, (top_ + kHeight - kBottom) / 2,
         fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 16 {:.1f})\"", (top_ + kHeight - kBottom) / 2),
         chart_.y_title + (log_y_ ? " (log scale)" : ""));
  }

  // Each a row above the one before, so that neighbours can be read.
  void draw_mark(double x, const std::string& what, std::size_t row) {
    constexpr std::size_t kRows = 8;
    const double at = x_of(x);
    body_ +=
        fmt::format("<path d=\"M{:.1f} {}V{:.1f}\" stroke=\"#555\" stroke-dasharray=\"4 4\"/>\n", at, top_, bottom());
    const bool is_right = at > kWidth * 0.7;
    text(is_right ? at - 5 : at + 5, bottom() - 8 - 15.0 * static_cast<double>(row % kRows),
         fmt::format("fill=\"#555\" text-anchor=\"{}\"", is_right ? "end" : "start"), what);
  }

  void draw_line(const ChartLine& line, const char* colour) {
    std::string path;
    for (const ChartPoint& p : line.points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(p.x), y_of(p.y));
    }
    body_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path, colour);
    for (const ChartPoint& p : line.points) {
      if (p.is_between) continue;
      body_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\" stroke=\"{}\" "
          "stroke-width=\"1.5\"><title>{}</title></circle>\n",
          x_of(p.x), y_of(p.y), p.is_hollow ? "white" : colour, colour,
          as_xml(fmt::format("{} at {:g}: {:.5g}", line.name, p.x, p.y)));
    }
  }

  // Where each name of the legend lies, and that of hollow points: in rows, as many as they need.
  void place_legend() {
    double x = kLeft, y = kRow;
    const auto place = [&](const std::string& name) {
      const double width = kKey + svg_text_width(name, kSize) + kRow;
      if (x > kLeft && x + width > kWidth) {
        x = kLeft;
        y += kRow;
      }
      legend_.emplace_back(x, y);
      x += width;
    };
    for (const ChartLine& line : chart_.lines) place(line.name);
    if (has_hollow()) place(chart_.hollow);
    top_ = y + kRow;
  }

  void draw_legend() {
    for (std::size_t i = 0; i < legend_.size(); ++i) {
      const auto [x, y] = legend_[i];
      if (i < chart_.lines.size()) {
        body_ += fmt::format("<path d=\"M{:.1f} {:.1f}h20\" stroke=\"{}\" stroke-width=\"3\"/>\n", x, y - 4,
                             kColours.at(i % kColours.size()));
        text(x + kKey, y, "", chart_.lines[i].name);
      } else {
        body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"white\" stroke=\"#555\"/>\n",
                             x + kKey / 2, y - 4);
        text(x + kKey, y, "", chart_.hollow);
      }
    }
  }

  [[nodiscard]] bool has_hollow() const {
    return std::ranges::any_of(
        chart_.lines, [](const ChartLine& line) { return std::ranges::any_of(line.points, &ChartPoint::is_hollow); });
  }

  const LineChart& chart_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, double>> legend_;
  double top_ = 0;  // of the plot
  bool log_y_ = false;
  std::vector<double> ticks_;  // of y
  std::string body_;
};

}  // namespace

std::string to_svg(const LineChart& chart) { return ChartDrawing(chart).draw(); }

}  // namespace moeline
