#include "experiments/timeline_page/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/page/svg.hpp"

namespace moeline {
namespace {

// In pixels.
constexpr double kWidth = 1180;
constexpr double kBarHeight = 26;
constexpr double kLaneStep = 32;
constexpr double kFont = 11;
constexpr double kMargin = 8;

struct Colours {
  const char *computes, *communicates;
};
// By Tint.
constexpr std::array<Colours, 6> kColours = {{{"#b8bcc2", "#e3e5e8"},
                                              {"#f5a742", "#ffd9a8"},
                                              {"#63b463", "#bfe3bf"},
                                              {"#6aa5dc", "#c5ddf3"},
                                              {"#f5a742", "#ffd9a8"},
                                              {"#b08ad6", "#e0d0f0"}}};

const Colours& colours_of(Tint tint) { return kColours[static_cast<std::size_t>(tint)]; }

constexpr const char* kCentred = " text-anchor=\"middle\"";

class Drawing {
 public:
  explicit Drawing(const std::vector<Picture>& pictures) : pictures_(pictures) {
    double names = 0;
    for (const Picture& picture : pictures) {
      starts_.push_back(start_of(picture));
      span_us_ = std::max(span_us_, to_us(end_of(picture) - starts_.back()));
      for (const PictureLane& lane : picture.lanes) names = std::max(names, svg_text_width(lane.name, kFont + 1));
    }
    left_ = std::ceil(names) + 2 * kMargin;
    if (span_us_ == 0) span_us_ = 1;
    scale_ = (kWidth - left_ - 2 * kMargin) / span_us_;
  }

  std::string draw() {
    double y = kMargin;
    for (std::size_t i = 0; i < pictures_.size(); ++i) y = draw_picture(pictures_[i], starts_[i], y);
    draw_axis(y);
    draw_legend();
    const double height = y + 2 * kMargin + kFont;
    return fmt::format(
               "{}xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{:.0f}\" viewBox=\"0 0 {} {:.0f}\" "
               "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
               kSvgStart, kWidth, height, kWidth, height) +
           body_ + "</svg>\n";
  }

 private:
  static Time start_of(const Picture& picture) {
    Time first = Time::max();
    for (const PictureLane& lane : picture.lanes) {
      for (const PictureBar& bar : lane.bars) first = std::min(first, bar.start);
    }
    return first == Time::max() ? Time::zero() : first;
  }
  static Time end_of(const Picture& picture) {
    Time last{};
    for (const PictureLane& lane : picture.lanes) {
      for (const PictureBar& bar : lane.bars) last = std::max(last, bar.end);
    }
    return last;
  }

  [[nodiscard]] double x_of(double us) const { return left_ + us * scale_; }

  void text(double x, double y, double size, const char* attributes, std::string_view text) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\"{}>{}</text>\n", x, y, size, attributes,
                         as_xml(text));
  }

  double draw_picture(const Picture& picture, Time start, double y) {
    constexpr double kTitle = 13;
    if (!picture.name.empty()) {
      text(kMargin, y + kTitle, kTitle, " font-weight=\"bold\"", picture.name);
      y += kTitle + kMargin;
    }
    for (const PictureLane& lane : picture.lanes) {
      text(left_ - kMargin, y + 0.65 * kBarHeight, kFont + 1, " text-anchor=\"end\"", lane.name);
      for (const PictureBar& bar : lane.bars) draw_bar(bar, start, y);
      y += kLaneStep;
    }
    return y + kMargin;
  }

  void draw_bar(const PictureBar& bar, Time start, double y) {
    const double x = x_of(to_us(bar.start - start));
    const double width = std::max(to_us(bar.end - bar.start) * scale_, 0.1);
    const auto fill = [&](Tint of) { return bar.communicates ? colours_of(of).communicates : colours_of(of).computes; };
    body_ += fmt::format("<g><title>{}</title>", as_xml(bar.title));
    rectangle(x, y, width, kBarHeight, fill(bar.tint), width > 3);
    if (bar.tint == Tint::both) rectangle(x, y + kBarHeight / 2, width, kBarHeight / 2, fill(Tint::backward), false);
    body_ += "</g>\n";
    draw_label(bar.label, x + width / 2, y, width - 4);
  }

  // On one line, or on two: "combine", "(B)"; else not at all. A line break is kept.
  void draw_label(const std::string& label, double x, double y, double room) {
    constexpr double kReadable = 7;
    const auto size_of = [&](std::string_view line) {
      return std::min(kFont, kFont * room / svg_text_width(line, kFont));
    };
    const bool broken = label.find('\n') != std::string::npos;
    const std::size_t cut = broken ? label.find('\n') : std::min(label.find('('), label.find(' '));
    if ((!broken && size_of(label) >= 0.8 * kFont) || (cut == std::string::npos && size_of(label) >= kReadable)) {
      return text(x, y + 0.65 * kBarHeight, size_of(label), kCentred, label);
    }
    if (cut == std::string::npos) return;
    const std::string first = label.substr(0, cut);
    const std::string second = label.substr(label[cut] == '(' ? cut : cut + 1);
    const double size = std::min({size_of(first), size_of(second), 0.85 * kFont});
    if (size < kReadable) return;
    text(x, y + 0.42 * kBarHeight, size, kCentred, first);
    text(x, y + 0.84 * kBarHeight, size, kCentred, second);
  }

  using LegendEntry = std::pair<const char*, std::string>;  // colour and name

  // Of the colours in use, right of the first picture's name.
  void draw_legend() {
    std::vector<LegendEntry> entries;
    for (const auto& [tint, name] : pictures_.front().legend) entries.emplace_back(colours_of(tint).computes, name);
    if (entries.empty()) entries = legend_of_passes();
    double x = kWidth - kMargin;
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      x -= svg_text_width(entry->second, kFont) + kMargin;
      text(x, kMargin + kFont, kFont, "", entry->second);
      x -= kFont + kMargin / 2;
      rectangle(x, kMargin + 2, kFont, kFont, entry->first, false);
    }
    body_ += "\n";
  }

  [[nodiscard]] std::vector<LegendEntry> legend_of_passes() const {
    constexpr std::pair<Tint, const char*> kPasses[] = {
        {Tint::backward, "backward"}, {Tint::weight, "weight gradients"}, {Tint::second, "second micro-batch"}};
    std::vector<LegendEntry> entries;
    for (const auto& [tint, name] : kPasses) {
      if (has(tint)) entries.emplace_back(colours_of(tint).computes, name);
    }
    if (entries.empty()) return {};
    entries.emplace(entries.begin(), colours_of(Tint::forward).computes,
                    has(Tint::second) ? "first micro-batch" : "forward");
    if (communicates()) entries.emplace_back(colours_of(Tint::forward).communicates, "paler: communication");
    return entries;
  }

  template <class Holds>
  [[nodiscard]] bool any_bar(Holds holds) const {
    for (const Picture& picture : pictures_) {
      for (const PictureLane& lane : picture.lanes) {
        if (std::any_of(lane.bars.begin(), lane.bars.end(), holds)) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool communicates() const {
    return any_bar([](const PictureBar& bar) { return bar.communicates; });
  }
  [[nodiscard]] bool has(Tint tint) const {
    return any_bar(
        [&](const PictureBar& bar) { return bar.tint == tint || (bar.tint == Tint::both && tint == Tint::backward); });
  }

  // Borders of bars that are thinner than theirs would be all that is seen.
  void rectangle(double x, double y, double width, double height, const char* fill, bool bordered) {
    body_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"{}/>", x, y,
                         width, height, fill, bordered ? " stroke=\"#555\" stroke-width=\"0.5\"" : "");
  }

  void draw_axis(double y) {
    constexpr double kMostTicks = 12;
    const double step = svg_tick_step(span_us_, kMostTicks);
    constexpr std::pair<double, const char*> kUnits[] = {{1e6, "s"}, {1e3, "ms"}, {1, "us"}};
    const auto& [unit, name] = *std::find_if(std::begin(kUnits), std::end(kUnits) - 1,
                                             [&](const auto& each) { return step >= each.first / 2; });
    body_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#555\"/>\n", left_, y, x_of(span_us_));
    for (double us = 0; us <= span_us_ * 1.001; us += step) {
      body_ += fmt::format("<path d=\"M{:.1f} {:.1f}v4\" stroke=\"#555\"/>\n", x_of(us), y);
      text(x_of(us), y + 4 + kFont, kFont, kCentred, fmt::format("{:g} {}", us / unit, name));
    }
  }

  const std::vector<Picture>& pictures_;
  std::vector<Time> starts_;
  double span_us_ = 0;
  double left_ = 0;
  double scale_ = 1;  // pixels per us
  std::string body_;
};

}  // namespace

std::string to_svg(const std::vector<Picture>& pictures) { return Drawing(pictures).draw(); }

}  // namespace moeline
