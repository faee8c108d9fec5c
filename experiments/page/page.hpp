// A page of plots of many points, such as a study's: one HTML file that loads nothing when it is opened.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/text_table.hpp"
#include "experiments/page/template.hpp"
#include "experiments/run/metrics.hpp"

namespace moeline {

/// What points differ in.
struct PageAxis {
  std::string label;
  std::vector<std::string> values;  ///< as shown, in the order of the axis
  std::vector<double> numbers;      ///< where they lie, ascending; empty of an axis of names
  std::vector<std::size_t> at;      ///< of every point, the index of its value
};

struct PageMetric {
  std::string name;
  std::string unit;
  Better better = Better::neither;
  std::vector<double> values;  ///< of every point; NaN where there is none
};

/// With unit and direction as the table of metrics has them. REQUIRES: it has the name.
[[nodiscard]] PageMetric page_metric(const std::string& name, std::vector<double> values);

/// Plots name metrics and axes of the page as it shows them first; whoever looks at it can choose others.
struct LinePlot {
  std::string metric;
  std::string x;
  std::string series;  ///< a line for each of its values; empty where the page has one axis
};
struct HeatMap {
  std::string metric;
  std::string x;
  std::string y;
};
/// A value that a metric must keep, drawn where a plot has that metric.
struct PageLimit {
  std::string metric;
  double value = 0;
  std::string label;
};
/// Of metrics that are better higher or lower. Points that do not fit memory are shown, and are not on the front.
struct ParetoPlot {
  std::string x;
  std::string y;
  std::string title = "Pareto front";
  std::string about{};      ///< a sentence or more below the title
  std::string front_per{};  ///< an axis each value of which has a front of its own; empty: one front
  std::vector<PageLimit> limits{};
  std::optional<std::size_t> answer{};  ///< the point that is pointed out
};
using Plot = std::variant<LinePlot, HeatMap, ParetoPlot>;

/// A number with its name above and what belongs to it below.
struct PageFigure {
  std::string label, value, note;
};
/// What is to be copied, such as commands.
struct PageCommands {
  std::string title, text;
};
/// What is read and not plotted, in this order. The first row of a table is its head.
struct TextSection {
  std::string title;
  std::vector<PageFigure> figures{};
  std::vector<std::string> lines{};
  std::vector<TextTable> tables{};
  std::vector<PageCommands> commands{};
  std::string svg{};  ///< a picture
};

struct Page {
  std::string title;
  std::vector<std::string> summary;  ///< a sentence each, below the title
  std::vector<TextSection> before;   ///< the plots
  std::vector<TextSection> after;    ///< them
  std::vector<PageAxis> axes;
  std::vector<PageMetric> metrics;
  std::vector<std::string> failures;  ///< of every point: why it has no metrics, or empty
  std::vector<bool> fits_memory;      ///< of every point, or empty where that is not known
  std::vector<Plot> plots;
  std::string source_title;  ///< of a text that the page can show, as that of a study
  std::string source;
};

/// Texts and plots, in the page's order, the failed points by their reasons, and the table. Equal pages give equal
/// bytes. REQUIRES: every axis and metric has as many entries as there are failures; plots name what the page has.
[[nodiscard]] std::string to_html(const Page& page, const PageTemplate& page_template);

}  // namespace moeline
