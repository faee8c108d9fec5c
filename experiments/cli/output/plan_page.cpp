// The answer as a page: what the terminal has, and every step of decode that was searched as a plot.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/output/plan_output.hpp"
#include "experiments/page/axes.hpp"

namespace moeline {
namespace {

constexpr const char* kPerUser = "tokens_per_s_per_user";
constexpr const char* kPerGpu = "tokens_per_s_per_gpu";
constexpr const char* kTpot = "tpot_ms";
constexpr const char* kCost = "cost_per_million_tokens";

std::string units_of(const Side& side) {
  const std::string spare = side.spares > 0 ? fmt::format(", {} of them spare", side.spares) : "";
  return fmt::format("{} unit{}{}", side.all_units(), side.all_units() == 1 ? "" : "s", spare);
}

void add_units(const Deployment& d, std::vector<PageFigure>& figures) {
  const std::string prefill = describe(d.prefill_choice);
  const std::string decode = describe(d.decode_choice);
  if (d.colocated) {
    figures.push_back({"prefill and decode", units_of(d.decode), prefill + "; " + decode});
  } else {
    figures.push_back({"prefill", units_of(d.prefill), prefill});
    figures.push_back({"decode", units_of(d.decode), decode});
  }
}

std::vector<PageFigure> figures_of(const Plan& plan, const Deployment& d) {
  const auto limit = [&](double ms) {
    return fmt::format("limit {:.4g} ms, {:.4g} % of requests", ms, plan.limits.percentile);
  };
  std::vector<PageFigure> figures = {{"GPUs", fmt::format("{} {}", d.gpus, d.decode_choice.hardware), nodes_of(d)}};
  add_units(d, figures);
  figures.push_back({"numbers", formats_of(d.formats), ""});
  if (d.usd_per_hour > 0) {
    figures.push_back({"per million tokens", fmt::format("{:.3f} USD", d.cost_per_million_tokens),
                       fmt::format("{:.2f} USD/h", d.usd_per_hour)});
  }
  figures.push_back({"TTFT", fmt::format("{:.0f} ms", d.ttft_ms), limit(plan.limits.ttft_ms)});
  figures.push_back({"TPOT", fmt::format("{:.2f} ms", d.tpot_ms), limit(plan.limits.tpot_ms)});
  figures.push_back({"for each user", fmt::format("{:.1f} tokens/s", d.tokens_per_s_per_user),
                     fmt::format("{:.1f} tokens/s from each GPU", d.tokens_per_s_per_gpu)});
  figures.push_back({"bound by", d.bound_by, ""});
  return figures;
}

TextSection deployment_section(const char* title, const Plan& plan, const Deployment& d) {
  TextSection section{.title = title, .figures = figures_of(plan, d)};
  section.lines = {answer_lines(d).front()};  // the figures have the rest
  section.tables = {sides_table(d), memory_table(d)};
  return section;
}

void add_answer(const PlanResult& result, Page& page) {
  const Answer& answer = result.answer;
  if (!answer.deployments.empty()) {
    page.before = {deployment_section("The answer", result.plan, answer.deployments.front())};
    if (result.promises) {
      page.before.push_back(
          {.title = "Served request by request", .lines = {served_line(result)}, .tables = {served_table(result)}});
    }
    return;
  }
  page.before = {{.title = "No deployment is within the limits", .lines = {nearest_line(result.plan, answer)}}};
  if (answer.nearest) page.before.push_back(deployment_section("The nearest", result.plan, *answer.nearest));
}

void add_details(const PlanResult& result, Page& page) {
  const std::vector<Deployment>& deployments = result.answer.deployments;
  if (deployments.size() > 1) {
    page.after.push_back(
        {.title = "The others, and why not", .tables = {others_table(deployments, deployments.size())}});
  }
  if (!result.sensitivities.empty()) {
    page.after.push_back({.title = "If an assumption is wrong", .tables = {sensitivity_table(result)}});
  }
  if (!result.answer.impossible.empty()) {
    page.after.push_back({.title = "Left out before anything was simulated", .lines = impossible_lines(result.answer)});
  }
  if (deployments.empty()) return;
  TextSection& commands = page.after.emplace_back(TextSection{.title = "Commands"});
  for (ProgramCommands& each : launch_texts(result.plan, deployments.front())) {
    commands.commands.push_back({std::move(each.program), std::move(each.text)});
  }
}

PageMetric metric(const char* name, const std::vector<TradeOff>& points, const auto& value_of) {
  PageMetric metric = page_metric(name, {});
  for (const TradeOff& point : points) metric.values.push_back(value_of(point));
  return metric;
}

void add_metrics(const Plan& plan, const std::vector<TradeOff>& points, Page& page) {
  page.metrics = {metric(kPerUser, points, [](const TradeOff& p) { return p.tokens_per_s_per_user; }),
                  metric(kPerGpu, points, [](const TradeOff& p) { return p.tokens_per_s_per_gpu; }),
                  metric(kTpot, points, [](const TradeOff& p) { return 1e3 / p.tokens_per_s_per_user; })};
  if (plan.hardware.front().usd_per_gpu_hour == 0) return;
  page.metrics.push_back(metric(kCost, points, [&](const TradeOff& p) {
    return machine_named(plan, p.choice.hardware).usd_per_gpu_hour / 3600 / p.tokens_per_s_per_gpu * 1e6;
  }));
}

AxesOfSettings axes_of(const std::vector<TradeOff>& points) {
  std::vector<std::vector<std::string>> settings;
  for (const TradeOff& point : points) {
    const DecodeChoice& c = point.choice;
    settings.push_back(
        {c.hardware, short_name(c.unit), std::to_string(c.batch_size), c.schedule, std::to_string(c.mtp)});
  }
  std::vector<const std::vector<std::string>*> rows;
  for (const auto& row : settings) rows.push_back(&row);
  return axes_of_settings({"hardware", "unit", "requests of an attention group", "schedule", "MTP"}, rows);
}

// A front for each machine, where there are several.
std::string machine_axis(const Page& page) {
  const auto axis = std::find_if(page.axes.begin(), page.axes.end(),
                                 [](const PageAxis& each) { return each.label.starts_with("hardware"); });
  return axis == page.axes.end() ? "" : axis->label;
}

// Of disaggregated serving, whose points these are.
std::optional<std::size_t> answer_in(const Answer& answer) {
  if (answer.deployments.empty() || answer.deployments.front().colocated) return std::nullopt;
  const std::vector<TradeOff>& points = answer.trade_offs;
  const DecodeChoice& best = answer.deployments.front().decode_choice;
  const auto at = std::find_if(points.begin(), points.end(), [&](const TradeOff& p) { return p.choice == best; });
  MOELINE_CHECK(at != points.end(), describe(best));
  return at - points.begin();
}

ParetoPlot plot_of(const PlanResult& result, const Page& page, const std::vector<std::string>& notes) {
  const double tpot_ms = result.plan.limits.tpot_ms;
  const std::string limit = fmt::format("TPOT {:.4g} ms", tpot_ms);
  ParetoPlot plot{.x = kPerUser, .y = kPerGpu, .title = "If TPOT were not limited"};
  plot.about =
      "Every point is a batch size of decode that fits into memory, beside the prefill that the plan found on its "
      "machine, whose GPUs count.";
  if (!notes.empty()) plot.about += fmt::format(" At every point: {}.", fmt::join(notes, ", "));
  plot.front_per = machine_axis(page);
  plot.limits = {{kPerUser, 1e3 / tpot_ms, limit}, {kTpot, tpot_ms, limit}};
  plot.answer = answer_in(result.answer);
  return plot;
}

// Others have no choice of decode apart from prefill.
void add_plot(const PlanResult& result, Page& page) {
  const std::vector<TradeOff>& points = result.answer.trade_offs;
  if (points.empty()) return;
  AxesOfSettings axes = axes_of(points);
  page.axes = std::move(axes.axes);
  page.failures.resize(points.size());
  page.fits_memory.assign(points.size(), true);  // others were never simulated
  add_metrics(result.plan, points, page);
  page.plots = {plot_of(result, page, axes.notes)};
}

}  // namespace

Page plan_page(const PlanResult& result) {
  Page page;
  page.title = "Plan: " + result.plan.file.stem().string();
  page.summary = question_lines(result.plan);
  add_answer(result, page);
  add_plot(result, page);
  add_details(result, page);
  page.source_title = "The plan";
  page.source = read_text(result.plan.file);
  return page;
}

}  // namespace moeline
