#include "experiments/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "experiments/page/page_json.hpp"

namespace moeline {
namespace {

// Whether ratios of neighbours differ less than their distances do, as in 8, 16, 32.
bool grows_by_factors(const std::vector<double>& numbers) {
  if (numbers.size() < 3 || numbers.front() <= 0) return false;
  double least_ratio = INFINITY;
  double least_step = INFINITY;
  double most_ratio = 0;
  double most_step = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const double ratio = numbers[i] / numbers[i - 1];
    const double step = numbers[i] - numbers[i - 1];
    least_ratio = std::min(least_ratio, ratio);
    most_ratio = std::max(most_ratio, ratio);
    least_step = std::min(least_step, step);
    most_step = std::max(most_step, step);
  }
  return most_ratio / least_ratio < most_step / least_step;
}

const char* name_of(Better better) {
  if (better == Better::neither) return "neither";
  return better == Better::higher ? "higher" : "lower";
}

void write_axis(PageJson& json, const PageAxis& axis) {
  json.open();
  json.entry("label", axis.label);
  json.texts("values", axis.values);
  if (!axis.numbers.empty()) json.numbers("numbers", axis.numbers);
  json.flag("log", grows_by_factors(axis.numbers));
  json.numbers("at", axis.at);
  json.close();
}

void write_metric(PageJson& json, const PageMetric& metric) {
  json.open();
  json.entry("name", metric.name);
  json.entry("unit", metric.unit);
  json.entry("better", name_of(metric.better));
  json.numbers("values", metric.values);
  json.close();
}

void write_points(PageJson& json, const Page& page) {
  json.key("points");
  json.open();
  const std::vector<bool> all(page.failures.size(), true);
  json.numbers("fits_memory", page.fits_memory.empty() ? all : page.fits_memory);
  std::vector<std::size_t> failed;
  for (std::size_t point = 0; point < page.failures.size(); ++point) {
    if (!page.failures[point].empty()) failed.push_back(point);
  }
  json.list("failures", failed, [&](std::size_t point) {
    json.open();
    json.key("point");
    json.number(static_cast<double>(point));
    json.entry("why", page.failures[point]);
    json.close();
  });
  json.close();
}

// What a plot shows first, by its kind.
struct WritePlot {
  PageJson& json;

  void operator()(const LinePlot& plot) {
    json.entry("kind", "lines");
    json.entry("metric", plot.metric);
    json.entry("x", plot.x);
    json.entry("series", plot.series);
  }
  void operator()(const HeatMap& plot) {
    json.entry("kind", "heat_map");
    json.entry("metric", plot.metric);
    json.entry("x", plot.x);
    json.entry("y", plot.y);
  }
  void operator()(const ParetoPlot& plot) {
    json.entry("kind", "pareto");
    json.entry("x", plot.x);
    json.entry("y", plot.y);
    json.entry("title", plot.title);
    json.entry("about", plot.about);
    json.entry("front_per", plot.front_per);
    if (plot.answer) {
      json.key("answer");
      json.number(static_cast<double>(*plot.answer));
    }
    json.list("limits", plot.limits, [this](const PageLimit& limit) {
      json.open();
      json.entry("metric", limit.metric);
      json.key("value");
      json.number(limit.value);
      json.entry("label", limit.label);
      json.close();
    });
  }
};

void write_table(PageJson& json, const TextTable& table) {
  json.open();
  json.entry("alignment", table.alignment());
  json.list("rows", table.rows(), [&](const std::vector<std::string>& cells) {
    json.open();
    json.texts("cells", cells);
    json.close();
  });
  json.close();
}

void write_section(PageJson& json, const TextSection& section) {
  json.open();
  json.entry("title", section.title);
  json.list("figures", section.figures, [&](const PageFigure& figure) {
    json.open();
    json.entry("label", figure.label);
    json.entry("value", figure.value);
    json.entry("note", figure.note);
    json.close();
  });
  json.texts("lines", section.lines);
  json.list("tables", section.tables, [&](const TextTable& table) { write_table(json, table); });
  json.list("commands", section.commands, [&](const PageCommands& commands) {
    json.open();
    json.entry("title", commands.title);
    json.entry("text", commands.text);
    json.close();
  });
  if (!section.svg.empty()) json.entry("svg", section.svg);
  json.close();
}

std::string data_of(const Page& page) {
  PageJson json;
  json.open();
  json.entry("version", MOELINE_VERSION);
  json.entry("title", page.title);
  json.texts("summary", page.summary);
  json.list("before", page.before, [&](const TextSection& section) { write_section(json, section); });
  json.list("after", page.after, [&](const TextSection& section) { write_section(json, section); });
  json.list("axes", page.axes, [&](const PageAxis& axis) { write_axis(json, axis); });
  json.list("metrics", page.metrics, [&](const PageMetric& metric) { write_metric(json, metric); });
  write_points(json, page);
  json.list("plots", page.plots, [&](const Plot& plot) {
    json.open();
    std::visit(WritePlot{json}, plot);
    json.close();
  });
  json.key("source");
  json.open();
  json.entry("title", page.source_title);
  json.entry("text", page.source);
  json.close();
  json.close();
  return json.for_script();
}

void check_consistent(const Page& page) {
  const std::size_t count = page.failures.size();
  const std::size_t known = page.fits_memory.size();
  MOELINE_CHECK(known == count || known == 0, fmt::format("{} of {}", known, count));
  for (const PageAxis& axis : page.axes) MOELINE_CHECK(axis.at.size() == count, axis.label);
  for (const PageMetric& metric : page.metrics) MOELINE_CHECK(metric.values.size() == count, metric.name);
}

}  // namespace

PageMetric page_metric(const std::string& name, std::vector<double> values) {
  const Metric* known = metric_named(name);
  MOELINE_CHECK(known != nullptr, name);
  return {name, known->unit, known->better, std::move(values)};
}

std::string to_html(const Page& page, const PageTemplate& page_template) {
  check_consistent(page);
  return filled(page_template, page.title, data_of(page));
}

}  // namespace moeline
