// The answer as a page: what the terminal has, and every layout that was searched as a plot.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/output/training_plan_output.hpp"
#include "experiments/page/axes.hpp"

namespace moeline {
namespace {

constexpr const char* kSpeed = "tokens_per_s_per_gpu";
constexpr const char* kMemory = "memory_gib";

using Points = std::vector<LayoutPoint>;

// Those that fit, and of those that do not the ones that come near it.
Points points_of(const TrainingAnswer& answer) {
  Points all = answer.searched;
  for (const LayoutPoint& point : answer.too_large) {
    if (point.ran()) all.push_back(point);
  }
  return all;
}

PageMetric metric(const char* name, const Points& points, const auto& value_of) {
  PageMetric metric = page_metric(name, {});
  for (const LayoutPoint& point : points) metric.values.push_back(value_of(point));
  return metric;
}

AxesOfSettings axes_of(const TrainingJob& job, const Points& points) {
  std::vector<std::vector<std::string>> settings;
  for (const LayoutPoint& point : points) {
    const Layout& l = point.layout;
    const Parallelism& p = l.split;
    const auto number = [](int value) { return fmt::format("{}", value); };
    settings.push_back({job.hardware[l.machine].name, number(p.tp), number(p.cp), number(p.pp), number(p.virtual_pp),
                        number(p.ep), number(l.micro_batch_size), l.schedule, l.overlap, l.saving.recompute,
                        l.saving.offload, l.saving.offload_optimizer ? "yes" : "no"});
  }
  std::vector<const std::vector<std::string>*> rows;
  for (const auto& row : settings) rows.push_back(&row);
  return axes_of_settings({"hardware", "tp", "cp", "pp", "virtual_pp", "ep", "micro_batch_size", "schedule", "overlap",
                           "recompute", "offload", "offload_optimizer"},
                          rows);
}

std::optional<std::size_t> answer_in(const TrainingAnswer& answer, const Points& points) {
  if (answer.best.empty()) return std::nullopt;
  const auto at = std::find_if(points.begin(), points.end(),
                               [&](const LayoutPoint& point) { return point.layout == answer.best.front().layout; });
  MOELINE_CHECK(at != points.end(), describe(answer.best.front().layout));
  return at - points.begin();
}

void add_plot(const TrainingPlanResult& result, Page& page) {
  const Points points = points_of(result.answer);
  if (points.empty()) return;
  AxesOfSettings axes = axes_of(result.job, points);
  page.axes = std::move(axes.axes);
  page.metrics = {metric(kSpeed, points, [](const LayoutPoint& p) { return p.tokens_per_s; }),
                  metric(kMemory, points, [](const LayoutPoint& p) { return p.memory_gib; }),
                  metric("step_ms", points, [](const LayoutPoint& p) { return p.step_ms; }),
                  metric("mfu", points, [](const LayoutPoint& p) { return p.mfu; }),
                  metric("bubble_ms", points, [](const LayoutPoint& p) { return p.bubble_ms; })};
  page.failures.resize(points.size());
  for (const LayoutPoint& point : points) page.fits_memory.push_back(point.fits);
  ParetoPlot plot{.x = kMemory, .y = kSpeed};
  plot.title = "Speed and memory of every layout that was searched";
  plot.about = "By slots, with GPUs alike; those that do not fit are shown, and are not on the front.";
  for (const std::string& note : axes.notes) plot.about += " " + note + ".";
  plot.answer = answer_in(result.answer, points);
  page.plots = {std::move(plot)};
}

TextSection answer_section(const TrainingPlanResult& result) {
  const TrainingAnswer& answer = result.answer;
  if (answer.best.empty()) {
    return {.title = "No layout fits into memory", .tables = {nearest_table(result.job, answer)}};
  }
  const LayoutPoint& best = answer.best.front();
  TextSection section{.title = "The answer"};
  section.figures = {{"step", fmt::format("{:.3f} s", best.step_ms / 1e3), describe(best.layout)},
                     {"each GPU", fmt::format("{:.0f} tokens/s", best.tokens_per_s),
                      fmt::format("{:.1f} % of the BF16 peak", 100 * best.mfu)},
                     {"memory", fmt::format("{:.1f} GiB", best.memory_gib), "of the fullest GPU"},
                     {"bound by", best.bound_by(), ""}};
  section.lines = answer_lines(result.job, best);
  return section;
}

}  // namespace

Page training_plan_page(const TrainingPlanResult& result) {
  Page page;
  page.title = fmt::format("Training {} on {} GPUs", result.job.model, result.job.gpus);
  page.summary = job_lines(result.job);
  page.summary.push_back(searched_line(result.answer));
  page.before = {answer_section(result)};
  add_plot(result, page);
  if (!result.answer.best.empty()) {
    page.after.push_back(
        {.title = "The best, operator by operator", .tables = {best_table(result.job, result.answer)}});
    page.after.push_back(
        {.title = "Why the others are behind, ms of a step", .tables = {reasons_table(result.answer)}});
    if (!result.sensitivities.empty()) {
      page.after.push_back({.title = "If an assumption is wrong", .tables = {sensitivity_table(result)}});
    }
    page.after.push_back({.title = "Commands",
                          .commands = {{"Megatron-LM", flags_text(result.job, result.answer.best.front().layout)}}});
  }
  page.source_title = result.job.file.filename().string();
  page.source = read_text(result.job.file);
  return page;
}

}  // namespace moeline
