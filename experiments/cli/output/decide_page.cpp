#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "experiments/cli/output/decide_output.hpp"
#include "experiments/cli/output/decide_texts.hpp"
#include "experiments/page/line_chart.hpp"

namespace moeline {
namespace {

constexpr const char* kSettingAxis = "setting";
constexpr const char* kUnfit = "does not fit memory";

// One setting at one point.
struct Drawn {
  const DecidePoint* point;
  std::size_t course, setting;

  [[nodiscard]] const SettingOutcome& outcome() const { return point->outcomes[setting]; }
};

std::vector<Drawn> drawn_points(const Decision& d) {
  std::vector<Drawn> drawn;
  for (std::size_t course = 0; course < d.courses.size(); ++course) {
    for (const DecidePoint& point : d.courses[course].points) {
      for (std::size_t i = 0; i < point.outcomes.size(); ++i) drawn.push_back({&point, course, i});
    }
  }
  return drawn;
}

// All that the points have; numbers ascend.
std::vector<std::string> values_along(const Decision& d) {
  const DecideAxis& axis = *d.question.along;
  if (axis.kind == DecideAxis::Kind::words) return axis.values;
  std::set<double> numbers;
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) numbers.insert(as_number<double>(point.at).value());
  }
  std::vector<std::string> values;
  for (const double number : numbers) values.push_back(shortest(number));
  return values;
}

PageAxis page_axis(const std::string& label, std::vector<std::string> values, bool is_number) {
  PageAxis axis;
  axis.label = label;
  axis.values = std::move(values);
  if (!is_number) return axis;
  for (const std::string& value : axis.values) axis.numbers.push_back(as_number<double>(value).value());
  return axis;
}

std::size_t index_of(const std::vector<std::string>& values, const std::string& value) {
  return static_cast<std::size_t>(std::ranges::find(values, value) - values.begin());
}

std::vector<PageAxis> axes_of(const Decision& d, const std::vector<Drawn>& points) {
  const DecideQuestion& q = d.question;
  std::vector<PageAxis> axes = {page_axis(q.along->key, values_along(d), q.along->kind != DecideAxis::Kind::words)};
  std::vector<std::string> names;
  for (const DecideSetting& setting : q.settings) names.push_back(setting.name);
  axes.push_back(page_axis(kSettingAxis, names, false));
  if (q.beside) axes.push_back(page_axis(q.beside->key, q.beside->values, q.beside->kind != DecideAxis::Kind::words));
  for (const Drawn& drawn : points) {
    axes[0].at.push_back(index_of(axes[0].values, drawn.point->at));
    axes[1].at.push_back(drawn.setting);
    if (q.beside) axes[2].at.push_back(drawn.course);
  }
  return axes;
}

TextSection section_of(const Decision& d, const WinReason& reason) {
  TextSection section{.title = fmt::format("Why, {}", place_of(d, d.point_of(reason))),
                      .lines = {reason_line(d, reason)}};
  if (const std::string band = band_line(d, reason); !band.empty()) section.lines.push_back(band);
  if (reason.parts.empty()) return section;
  TextTable table("lrrr");
  table.row({time_unit_of(d.by, d.serves_requests()), d.name_of_setting(reason.from), d.name_of_setting(reason.to),
             "difference"});
  for (const PartDifference& part : reason.parts) {
    table.row({part.what, fmt::format("{:.2f}", part.from_us), fmt::format("{:.2f}", part.to_us),
               fmt::format("{:+.2f}", part.us())});
  }
  section.tables.push_back(std::move(table));
  return section;
}

// Of the curves that are drawn.
void add_marks(const DecideCourse& course, const Decision& d, LineChart& chart) {
  for (const Turn& turn : course.turns) {
    const DecidePoint& point = course.points[turn.at];
    const std::string who = point.winner.setting ? d.name_of_setting(*point.winner.setting) : "nobody";
    const auto at = as_number<double>(point.at);
    const double x = at && chart.names.empty() ? *at : static_cast<double>(index_of(chart.names, point.at));
    const std::string of = d.question.beside ? point.beside + ": " : "";
    chart.marks.emplace_back(x, fmt::format("{}from {} on {}", of, point.at, who));
  }
}

}  // namespace

Page decide_page(const Decision& d) {
  const std::vector<Drawn> points = drawn_points(d);
  Page page;
  std::vector<std::string> names;
  for (const DecideSetting& setting : d.question.settings) names.push_back(setting.name);
  page.title = fmt::format("{} {}", fmt::join(names, " or "), title_of(d));
  page.summary = turn_lines(d);
  page.source_title = "Scenarios";
  for (const DecideSetting& setting : d.question.settings) {
    if (page.source.find(setting.content) == std::string::npos) page.source += setting.content;
  }
  std::vector<double> values;
  bool unfit = false;
  for (const Drawn& drawn : points) {
    const SettingOutcome& outcome = drawn.outcome();
    values.push_back(outcome.is_simulated() ? outcome.value : NAN);
    page.failures.push_back(outcome.refused);
    page.fits_memory.push_back(!outcome.against.starts_with(kUnfit));
    unfit = unfit || !page.fits_memory.back();
  }
  if (!unfit) page.fits_memory.clear();
  page.axes = axes_of(d, points);
  page.metrics = {PageMetric{d.by.name, d.by.unit, d.by.better, std::move(values)}};
  page.plots = {LinePlot{d.by.name, d.question.along->key, kSettingAxis}};
  for (const WinReason& reason : d.reasons) page.after.push_back(section_of(d, reason));
  std::vector<std::string> sure = sure_lines(d);
  std::ranges::move(extrapolation_lines(d), std::back_inserter(sure));
  page.after.push_back({.title = "How sure", .lines = std::move(sure)});
  if (std::vector<std::string> refused = refusal_lines(d); !refused.empty()) {
    page.after.push_back(
        {.title = "What is not among the winners, where that was seen first", .lines = std::move(refused)});
  }
  return page;
}

std::string decide_svg(const Decision& d) {
  const DecideAxis& axis = *d.question.along;
  const bool words = axis.kind == DecideAxis::Kind::words;
  constexpr double kWide = 4;
  LineChart chart;
  chart.x_title = axis.key;
  chart.hollow = "hollow: does not fit memory, or breaks a limit";
  chart.y_title = fmt::format("{}, {}", d.by.name, d.by.unit);
  if (words) chart.names = axis.values;
  if (!words) {
    const double first = as_number<double>(axis.values.front()).value();
    chart.log_x = first > 0 && as_number<double>(axis.values.back()).value() >= kWide * first;
  }
  for (const DecideCourse& course : d.courses) {
    for (std::size_t i = 0; i < d.question.settings.size(); ++i) {
      const std::string of = d.question.beside ? ", " + course.points.front().beside : "";
      ChartLine line{.name = d.name_of_setting(i) + of, .points = {}};
      for (const DecidePoint& point : course.points) {
        const SettingOutcome& outcome = point.outcomes[i];
        if (!outcome.is_simulated()) continue;
        const double x =
            words ? static_cast<double>(index_of(chart.names, point.at)) : as_number<double>(point.at).value();
        line.points.push_back({x, outcome.value, !outcome.against.empty(), !point.is_asked});
      }
      chart.lines.push_back(std::move(line));
    }
    add_marks(course, d, chart);
  }
  return to_svg(chart);
}

}  // namespace moeline
