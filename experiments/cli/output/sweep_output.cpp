#include "experiments/cli/output/sweep_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "experiments/cli/output/csv_line.hpp"
#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/sweep_turns.hpp"
#include "experiments/page/axes.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
namespace {

// What the table has: metrics that any point has, and reasons where any failed.
struct Columns {
  std::vector<std::size_t> metrics;  // of the study's
  bool failure = false;
};

Columns columns_of(const Study& study, const std::vector<PointResult>& results) {
  Columns columns;
  for (std::size_t i = 0; i < study.metrics.size(); ++i) {
    const bool any = std::any_of(results.begin(), results.end(), [&](const PointResult& result) {
      return i < result.metrics.size() && !std::isnan(result.metrics[i]);
    });
    if (any) columns.metrics.push_back(i);
  }
  columns.failure =
      std::any_of(results.begin(), results.end(), [](const PointResult& r) { return !r.failure.empty(); });
  return columns;
}

using Cells = std::vector<std::string>;

// Head, and a row for each point.
std::vector<Cells> rows_of(const Study& study, const std::vector<PointResult>& results, const Columns& columns,
                           int digits) {
  Cells head = study.keys;
  for (const std::size_t metric : columns.metrics) head.push_back(study.metrics[metric]);
  if (columns.failure) head.emplace_back("failure");
  std::vector<Cells> rows = {head};
  for (const PointResult& result : results) {
    Cells& row = rows.emplace_back(study.points[result.id]);
    for (const std::size_t metric : columns.metrics) {
      const double value = result.metrics[metric];
      row.push_back(std::isnan(value) ? "" : fmt::format("{:.{}g}", value, digits));
    }
    if (columns.failure) row.push_back(result.failure);
  }
  return rows;
}

}  // namespace

std::string sweep_table(const Study& study, const std::vector<PointResult>& results) {
  constexpr int kDigits = 6;
  const Columns columns = columns_of(study, results);
  const std::vector<Cells> rows = rows_of(study, results, columns, kDigits);
  std::string alignment(rows.front().size(), 'r');
  if (columns.failure) alignment.back() = 'l';
  TextTable table(alignment);
  for (const Cells& row : rows) table.row(row);
  const std::string best = best_line(study, swept_best(study, results));
  return table.text() + (best.empty() ? "" : "\n" + best) + turns_table(swept_turns(study, results));
}

std::string sweep_csv(const Study& study, const std::vector<PointResult>& results) {
  constexpr int kDigits = 9;
  std::string text;
  for (const Cells& row : rows_of(study, results, columns_of(study, results), kDigits)) text += csv_line(row);
  return text;
}

namespace {

struct Swept {
  const Study& study;
  const std::vector<PointResult>& results;
};
struct SweptPoint {
  const Study& study;
  const PointResult& result;
};

std::vector<SweptPoint> swept_points(const Swept& swept) {
  std::vector<SweptPoint> points;
  for (const PointResult& result : swept.results) points.push_back({swept.study, result});
  return points;
}

std::vector<std::pair<std::string, std::string>> axes_of(const SweptPoint& point) {
  std::vector<std::pair<std::string, std::string>> axes;
  for (std::size_t i = 0; i < point.study.keys.size(); ++i) {
    axes.emplace_back(point.study.keys[i], point.study.points[point.result.id][i]);
  }
  return axes;
}

// `metrics`: names, in the order of a point's values.
Fields<PointResult> swept_metric_fields(const std::vector<std::string>& metrics) {
  Fields<PointResult> fields;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const Metric& metric = *metric_named(metrics[i]);
    const auto value = [i](const PointResult& r) {
      const bool is_known = i < r.metrics.size() && !std::isnan(r.metrics[i]);
      return is_known ? std::optional(r.metrics[i]) : std::nullopt;
    };
    fields.add(metric.name, meaning_of(metric), value, {.decimals = 6, .most = metric.is_at_most_1() ? 1 : -kAny});
  }
  return fields;
}

Fields<Swept> sweep_fields(const std::vector<std::string>& metrics) {
  const auto point = Fields<SweptPoint>()
                         .add("id", "number, from 0 on", [](auto& p) { return p.result.id; })
                         .values("axes", "by axis its value, as a text", axes_of, As())
                         .object(
                             "metrics", "those that the point has", [](auto& p) -> auto& { return p.result; },
                             swept_metric_fields(metrics))
                         .add("failure", "why there are none", [](auto& p) { return if_any(p.result.failure); });
  const auto stretch =
      Fields<SweptStretch>()
          .add("beside", "values of the other axes", [](auto& s) { return if_any(s.beside); })
          .add("from", "first value of the axis", &SweptStretch::from)
          .add("to", "last", &SweptStretch::to)
          .add("winner", "alternative; null: a tie, or none may win", [](auto& s) { return or_null(if_any(s.winner)); })
          .add("tie", "the best two are alike", &SweptStretch::is_tie)
          .add("ratio", "by how much it is better than the second at the least: 1.1 is a tenth; null: alone",
               [](auto& s) { return or_null(s.ratio); }, {.decimals = 6});
  const auto turns = Fields<SweptTurns>()
                         .add("by", "metric", &SweptTurns::by)
                         .add("along", "axis of numbers", &SweptTurns::along)
                         .add("among", "axis of alternatives", &SweptTurns::among)
                         .add("knows_memory", "points that do not fit lose", &SweptTurns::knows_memory)
                         .list("stretches", "with one winner", &SweptTurns::stretches, stretch);
  return output_fields<Swept>()
      .add("study", "file", [](auto& s) { return s.study.file.string(); })
      .list("points", "each combination", swept_points, point)
      .object(
          "best", "the best point that fits memory and keeps the limits, by the first metric that says which is better",
          [](auto& s) { return swept_best(s.study, s.results); },
          Fields<SweptBest>()
              .add("by", "metric", &SweptBest::by)
              .add("id", "of the point", &SweptBest::point)
              .add("value", "of the metric", &SweptBest::value, {.decimals = 6, .least = kAny}))
      .object(
          "turns", "where which alternative is best, of a study that has some",
          [](auto& s) {
            SweptTurns found = swept_turns(s.study, s.results);
            return found.stretches.empty() ? std::nullopt : std::optional(std::move(found));
          },
          turns);
}

}  // namespace

std::string sweep_json(const Study& study, const std::vector<PointResult>& results) {
  return sweep_fields(study.metrics).json({study, results});
}

std::string sweep_schema() {
  std::vector<std::string> metrics;
  for (const Metric* metric : run_metrics()) metrics.emplace_back(metric->name);
  return output_schema("sweep", "`moeline sweep STUDY --format json`", sweep_fields(metrics).described());
}

namespace {

constexpr const char* kSweptPerUser = "tokens_per_s_per_user";
constexpr const char* kSweptPerGpu = "tokens_per_s_per_gpu";

// What a study asks, where it begins with that as a comment; else its name.
std::string title_of(const Study& study) {
  const std::string first_line = study.text.substr(0, study.text.find('\n'));
  return first_line.starts_with("# ") ? first_line.substr(2) : study.file.filename().string();
}

std::vector<double> column_of(const std::vector<PointResult>& results, std::size_t metric) {
  std::vector<double> values;
  values.reserve(results.size());
  for (const PointResult& result : results) {
    values.push_back(metric < result.metrics.size() ? result.metrics[metric] : NAN);
  }
  return values;
}

bool any_of_them(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return !std::isnan(value); });
}

// Those that any point has; fits_memory is marked at the points instead.
void add_metrics(const Study& study, const std::vector<PointResult>& results, Page& page) {
  for (std::size_t i = 0; i < study.metrics.size(); ++i) {
    const std::string& name = study.metrics[i];
    std::vector<double> values = column_of(results, i);
    if (!any_of_them(values)) continue;
    if (name == "fits_memory") {
      for (const double value : values) page.fits_memory.push_back(value != 0);
      continue;
    }
    page.metrics.push_back(page_metric(name, values));
    if (name != "tpot_ms") continue;
    for (double& value : values) value = 1000 / value;
    page.metrics.push_back(page_metric(kSweptPerUser, std::move(values)));
  }
}

bool has_metric(const Page& page, const std::string& name) {
  return std::any_of(page.metrics.begin(), page.metrics.end(), [&](const PageMetric& m) { return m.name == name; });
}

std::vector<std::string> directed_metrics(const Page& page) {
  std::vector<std::string> names;
  for (const PageMetric& metric : page.metrics) {
    if (metric.better != Better::neither) names.push_back(metric.name);
  }
  return names;
}

// "tpot_ms <= 50" of a plot's metric.
void add_limits(const Study& study, const Page& page, ParetoPlot& plot) {
  for (const Condition& limit : study.limits) {
    const std::string& text = limit.text();
    const std::string metric = text.substr(0, text.find_first_of(" <>="));
    const std::size_t sign = text.find("<="), above = text.find(">=");
    const std::size_t at = std::min(sign, above);
    if (at == std::string::npos || !has_metric(page, metric)) continue;
    const std::size_t begin = text.find_first_not_of(' ', at + 2);
    const auto value = begin == std::string::npos ? std::nullopt : as_number<double>(text.substr(begin));
    if (!value) continue;
    plot.limits.push_back({metric, *value, text});
    if (metric == "tpot_ms" && *value > 0) plot.limits.push_back({kSweptPerUser, 1000 / *value, text});
  }
}

// Users' speed against the machine's in serving, else speed against memory, else what there is.
void add_pareto_plot(const Study& study, const std::string& metric, Page& page) {
  std::vector<std::string> others = directed_metrics(page);
  if (std::erase(others, metric) == 0 || others.empty()) return;
  const bool of_serving = metric == kSweptPerGpu && has_metric(page, kSweptPerUser);
  const std::string memory = has_metric(page, "memory_gib") ? "memory_gib" : others.front();
  ParetoPlot plot = of_serving ? ParetoPlot{kSweptPerUser, metric} : ParetoPlot{metric, memory};
  add_limits(study, page, plot);
  page.plots.emplace_back(std::move(plot));
}

// Numbers before names, then long ones before short ones.
std::vector<const PageAxis*> axes_to_plot(const Page& page) {
  std::vector<const PageAxis*> axes;
  for (const PageAxis& axis : page.axes) axes.push_back(&axis);
  std::stable_sort(axes.begin(), axes.end(), [](const PageAxis* a, const PageAxis* b) {
    return std::pair(!a->numbers.empty(), a->values.size()) > std::pair(!b->numbers.empty(), b->values.size());
  });
  return axes;
}

void add_plots(const Study& study, Page& page) {
  if (page.metrics.empty() || page.axes.empty()) return;
  const std::vector<std::string> directed = directed_metrics(page);
  const std::string first = directed.empty() ? page.metrics.front().name : directed.front();
  const std::string metric = has_metric(page, kSweptPerGpu) ? kSweptPerGpu : first;
  add_pareto_plot(study, metric, page);
  const std::vector<const PageAxis*> axes = axes_to_plot(page);
  if (axes.size() == 1) {
    page.plots.emplace_back(LinePlot{metric, axes[0]->label, ""});
    return;
  }
  constexpr std::size_t kMostLines = 12;  // that can be told apart
  const auto few = std::find_if(axes.begin() + 1, axes.end(),
                                [](const PageAxis* axis) { return axis->values.size() <= kMostLines; });
  page.plots.emplace_back(LinePlot{metric, axes[0]->label, (few == axes.end() ? axes[1] : *few)->label});
  page.plots.emplace_back(HeatMap{metric, axes[0]->label, axes[1]->label});
}

std::vector<std::string> summary_of(const Study& study, const Page& page, const std::vector<std::string>& notes) {
  const std::size_t count = page.failures.size();
  const auto failed =
      std::count_if(page.failures.begin(), page.failures.end(), [](const std::string& why) { return !why.empty(); });
  const auto unfit = std::count(page.fits_memory.begin(), page.fits_memory.end(), false);
  std::vector<std::string> lines = {
      fmt::format("{} of the study's {} points are in this table; {} failed.", count, study.points.size(), failed)};
  lines.push_back(page.fits_memory.empty() ? "Whether points fit memory is not known: the table has no fits_memory."
                                           : fmt::format("{} do not fit memory.", unfit));
  if (!study.assignments.empty())
    lines.push_back(fmt::format("For all points: {}.", fmt::join(study.assignments, ", ")));
  if (!notes.empty()) lines.push_back(fmt::format("At every point: {}.", fmt::join(notes, ", ")));
  if (has_metric(page, kSweptPerUser)) lines.push_back(fmt::format("{} is 1000 / tpot_ms.", kSweptPerUser));
  return lines;
}

}  // namespace

Page sweep_page(const Study& study, const std::vector<PointResult>& results) {
  MOELINE_CHECK(results.size() <= kMostPagePoints, fmt::format("{}", results.size()));
  Page page;
  page.title = title_of(study);
  std::vector<const std::vector<std::string>*> settings;
  for (const PointResult& result : results) {
    settings.push_back(&study.points[result.id]);
    page.failures.push_back(result.failure);
  }
  AxesOfSettings found = axes_of_settings(study.keys, settings);
  page.axes = std::move(found.axes);
  add_metrics(study, results, page);
  add_plots(study, page);
  page.summary = summary_of(study, page, found.notes);
  if (std::string best = best_line(study, swept_best(study, results)); !best.empty()) {
    best.pop_back();
    page.summary.push_back(best + ".");
  }
  page.source_title = "Study and scenario";
  page.source = study.text;
  return page;
}

}  // namespace moeline
