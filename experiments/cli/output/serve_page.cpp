#include "experiments/cli/output/serve_page.hpp"

#include <fmt/format.h>

#include <cmath>

#include "experiments/cli/output/serve_output.hpp"
#include "experiments/cli/output/serve_picture.hpp"
#include "experiments/serve/time_series.hpp"
#include "experiments/timeline_page/svg.hpp"

namespace moeline {
namespace {

struct SeriesMetric {
  const char* name;
  const char* unit;
  Better better;
  double ServeSlice::*value;
};
constexpr SeriesMetric kMetrics[] = {
    {"ttft_p50_ms", "ms", Better::lower, &ServeSlice::ttft_p50_ms},
    {"ttft_p99_ms", "ms", Better::lower, &ServeSlice::ttft_p99_ms},
    {"tpot_p50_ms", "ms", Better::lower, &ServeSlice::tpot_p50_ms},
    {"running", "requests", Better::neither, &ServeSlice::running},
    {"waiting", "requests", Better::lower, &ServeSlice::waiting},
    {"output_tokens_per_s", "tokens/s", Better::higher, &ServeSlice::output_tokens_per_s},
    {"arrivals_per_s", "1/s", Better::neither, &ServeSlice::arrivals_per_s},
    {"replicas_on", "replicas", Better::lower, &ServeSlice::replicas_on},
};
constexpr const char* kTime = "time, s";

PageAxis time_axis(const std::vector<ServeSlice>& slices) {
  PageAxis axis{.label = kTime, .values = {}, .numbers = {}, .at = {}};
  for (const ServeSlice& slice : slices) {
    axis.at.push_back(axis.values.size());
    axis.numbers.push_back(slice.begin_ms / 1e3);
    axis.values.push_back(fmt::format("{:.6g}", axis.numbers.back()));
  }
  return axis;
}

TextTable quantiles(const ServeMeasures& m) {
  TextTable table("lrrrr");
  table.row({"", "p50", "p90", "p99", "mean"});
  const auto add = [&](const std::string& what, const Quantiles& q) {
    const auto cell = [](double value) { return fmt::format("{:.2f}", value); };
    table.row({what, cell(q.p50), cell(q.p90), cell(q.p99), cell(q.mean)});
  };
  const auto add_all = [&](const std::string& which, const RequestTimes& times) {
    if (times.requests == 0) return;
    add("TTFT, ms" + which, times.ttft_ms);
    add("  in the queue" + which, times.queue_ms);
    add("TPOT, ms" + which, times.tpot_ms);
  };
  add_all("", m.steady);
  add_all(" (all at once at first)", m.first);
  return table;
}

}  // namespace

Page serve_page(const ServeResult& r) {
  constexpr int kSlices = 120;
  const std::vector<ServeSlice> slices = time_series(r.log, kSlices);
  const ServeMeasures& m = r.measures;
  const auto figure = [](const char* label, double value, const std::string& note) {
    return PageFigure{label, fmt::format("{:.1f}", value), note};
  };
  Page page;
  page.title = r.answers.setup.scenario.model + ", served request by request";
  page.summary = serve_title(r);
  page.before.push_back(
      {.title = "In the steady state",
       .figures = {figure("TTFT p50, ms", m.steady.ttft_ms.p50, "p99 " + fmt::format("{:.1f}", m.steady.ttft_ms.p99)),
                   figure("TPOT p50, ms", m.steady.tpot_ms.p50, "p99 " + fmt::format("{:.1f}", m.steady.tpot_ms.p99)),
                   figure("output tokens/s per GPU", m.output_tokens_per_s / r.gpus(),
                          fmt::format("of {} GPUs", r.gpus())),
                   figure("requests that run", m.mean_running, fmt::format("{:.1f} wait", m.mean_waiting))},
       .lines = {},
       .tables = {quantiles(m)},
       .commands = {}});
  page.after.push_back({.title = "Requests, and steps of their replicas", .svg = to_svg({serve_picture(r.log)})});
  page.axes = {time_axis(slices)};
  for (const SeriesMetric& metric : kMetrics) {
    if (metric.value == &ServeSlice::replicas_on && !r.workload.scaling.applies()) continue;
    std::vector<double> values;
    for (const ServeSlice& slice : slices) {
      const bool is_time = std::string(metric.unit) == "ms";
      const double value = slice.*metric.value;
      values.push_back(is_time && value == 0 ? NAN : value);  // no request came
    }
    page.metrics.push_back({metric.name, metric.unit, metric.better, std::move(values)});
  }
  page.failures.resize(slices.size());
  for (const char* metric : {"ttft_p99_ms", "running", "output_tokens_per_s"}) {
    page.plots.emplace_back(LinePlot{metric, kTime, ""});
  }
  return page;
}

}  // namespace moeline
