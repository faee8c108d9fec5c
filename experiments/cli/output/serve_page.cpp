
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "experiments/cli/output/serve_output.hpp"
#include "experiments/serve/measures.hpp"
#include "experiments/timeline_page/picture.hpp"

namespace moeline {
namespace {

constexpr std::size_t kMostRequests = 24, kMostReplicas = 6;

struct ShownStretch {
  double from_ms = 0, to_ms = 0;
};

// A bar of what lies within the stretch, if anything does.
void add_bar(PictureLane& lane, const ShownStretch& stretch, PictureBar bar, double from_ms, double to_ms) {
  from_ms = std::max(from_ms, stretch.from_ms);
  to_ms = std::min(to_ms, stretch.to_ms);
  if (to_ms <= from_ms) return;
  bar.start = from_us(1e3 * (from_ms - stretch.from_ms));
  bar.end = from_us(1e3 * (to_ms - stretch.from_ms));
  lane.bars.push_back(std::move(bar));
}

std::string span(double from_ms, double to_ms) { return fmt::format("{:.1f} ms", to_ms - from_ms); }

// Steps of one replica that follow each other without a gap, and are of one kind.
struct Row {
  double from_ms = 0, to_ms = 0;
  int steps = 0;
  Tint tint = Tint::none;
  double prompts = 0, answers = 0;

  [[nodiscard]] bool takes(const ServedStep& step, Tint kind) const {
    return kind == Tint::weight && tint == kind && step.start_ms - to_ms < 1e-6;
  }
  [[nodiscard]] PictureBar bar() const {
    const std::string label = tint == Tint::weight ? fmt::format("{} steps", steps) : fmt::format("{:.0f}", prompts);
    return {.label = label,
            .title = fmt::format("{} step{}, {}: {:.0f} answers, {:.0f} tokens of prompts at most in a group", steps,
                                 steps == 1 ? "" : "s", span(from_ms, to_ms), answers, prompts),
            .tint = tint};
  }
};

Tint kind_of(const ServedStep& step) {
  if (step.busiest.prompts == 0) return Tint::weight;
  return step.busiest.answers == 0 ? Tint::forward : Tint::second;
}

std::vector<PictureLane> lanes_of_steps(const ServeLog& log, const ShownStretch& stretch,
                                        const std::map<int, std::vector<std::size_t>>& replicas) {
  std::map<int, std::vector<Row>> rows;
  for (const ServedStep& step : log.steps) {
    if (!replicas.contains(step.replica) || step.start_ms > stretch.to_ms ||
        step.start_ms + step.ms < stretch.from_ms) {
      continue;
    }
    std::vector<Row>& of = rows[step.replica];
    const Tint kind = kind_of(step);
    if (of.empty() || !of.back().takes(step, kind)) of.push_back({.from_ms = step.start_ms, .tint = kind});
    Row& row = of.back();
    row.to_ms = step.start_ms + step.ms;
    ++row.steps;
    row.prompts = std::max(row.prompts, step.busiest.prompts);
    row.answers = std::max(row.answers, step.busiest.answers);
  }
  std::vector<PictureLane> lanes;
  for (const auto& [replica, of] : rows) {
    PictureLane& lane = lanes.emplace_back(PictureLane{fmt::format("replica {}", replica), {}});
    for (const Row& row : of) add_bar(lane, stretch, row.bar(), row.from_ms, row.to_ms);
  }
  return lanes;
}

PictureLane lane_of(const ServedRequest& r, std::size_t number, const ShownStretch& stretch) {
  constexpr Tint kTints[] = {Tint::none, Tint::forward, Tint::none, Tint::backward, Tint::weight};  // of the stages
  PictureLane lane{fmt::format("request {}", number), {}};
  const Tint* tint = kTints;
  for (const auto& [stage, from_ms, to_ms] : stages_of(r)) {
    const std::string title = fmt::format("{}, {}: {} + {} tokens, replica {}", stage, span(from_ms, to_ms),
                                          r.input_len, r.output_len, r.replica);
    add_bar(lane, stretch, {.label = stage, .title = title, .tint = *tint++}, from_ms, to_ms);
  }
  return lane;
}

// By replica where they get their answers, the first that come from there on.
std::map<int, std::vector<std::size_t>> requests_from(const ServeLog& log, double from_ms) {
  std::map<int, std::vector<std::size_t>> replicas;
  std::size_t found = 0;
  for (std::size_t i = 0; i < log.requests.size() && found < kMostRequests; ++i) {
    const ServedRequest& request = log.requests[i];
    if (request.arrival_ms < from_ms) continue;
    if (!replicas.contains(request.replica) && replicas.size() == kMostReplicas) continue;
    replicas[request.replica].push_back(i);
    ++found;
  }
  return replicas;
}

}  // namespace

Picture serve_picture(const ServeLog& log) {
  const std::vector<ServedRequest> steady = steady_requests(log);
  const ServedRequest& middle = steady[steady.size() / 2];
  const ShownStretch stretch{middle.arrival_ms, middle.arrival_ms + times_of(steady).total_ms.p50};
  const auto replicas = requests_from(log, stretch.from_ms);
  Picture picture;
  picture.lanes = lanes_of_steps(log, stretch, replicas);
  for (const auto& [replica, numbers] : replicas) {
    for (const std::size_t number : numbers) {
      PictureLane lane = lane_of(log.requests[number], number, stretch);
      if (!lane.bars.empty()) picture.lanes.push_back(std::move(lane));
    }
  }
  picture.name = fmt::format("from {:.2f} s on", stretch.from_ms / 1e3);
  picture.legend = {{Tint::none, "queue"},
                    {Tint::forward, "prompts"},
                    {Tint::second, "prompts and answers"},
                    {Tint::backward, "transfer"},
                    {Tint::weight, "answers"}};
  return picture;
}

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

TextTable whole_run(const BenchFigures& b) {
  TextTable table("lrrr");
  table.row({"the whole run", "mean", "median", "p99"});
  for (const auto& [what, figure] : bench_rows(b)) {
    table.row({what, fmt::format("{:.2f}", figure.mean), fmt::format("{:.2f}", figure.p50),
               fmt::format("{:.2f}", figure.p99)});
  }
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
       .tables = {quantiles(m), whole_run(m.bench)},
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
