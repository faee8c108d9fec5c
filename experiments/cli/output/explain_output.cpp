#include "experiments/cli/output/explain_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.hpp"
#include "experiments/cli/output/json.hpp"
#include "experiments/cli/output/kernels_output.hpp"
#include "experiments/cli/output/known_time.hpp"
#include "experiments/cli/output/modules_output.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

std::string of_span(Time time, Time span) { return fmt::format("{:.1f} %", 100 * ratio(time, span)); }

std::string reason_table(const Explanation& e) {
  std::array<Time, kPathReasons> times{};
  for (const PathStep& step : e.path) times[static_cast<std::size_t>(step.reason)] += step.end - step.start;
  TextTable table("lrr");
  for (std::size_t i = 0; i < kPathReasons; ++i) {
    if (times[i] > Time::zero()) {
      table.row({name_of(static_cast<PathReason>(i)), us_text(times[i]), of_span(times[i], e.span)});
    }
  }
  return table.text("  ");
}

// The largest, until they make up nearly all.
std::string blame_table(const Explanation& e) {
  constexpr double kNearlyAll = 0.95;
  TextTable table("lrr");
  Time sum{};
  for (const Blame& blame : e.blame) {
    table.row({title_of(blame), us_text(blame.time), of_span(blame.time, e.span)});
    sum += blame.time;
    if (ratio(sum, e.span) > kNearlyAll) break;
  }
  return table.text("  ") + fmt::format("  ... the rest {}\n", us_text(e.span - sum));
}

// What to optimise next.
std::string sensitivity_table(const Explanation& e) {
  TextTable table("lrrrrrl");
  table.row(sensitivity_head());
  const std::vector<std::vector<std::string>> rows = sensitivity_rows(e.sensitivities);
  for (const std::vector<std::string>& row : rows) table.row(row);
  std::string text = table.text("  ");
  if (text.find('~') != std::string::npos) {
    text += "  ~: gains and elasticity disagree, since neighbours slow each other down or paths tie: simulate it\n";
  }
  return text + fmt::format("  {} of {} items; JSON has all elasticities\n", rows.size(), e.sensitivities.size());
}

std::string bound_table(const Explanation& e) {
  TextTable table("lrr");
  for (const Bound& bound : e.bounds) table.row({bound.what, us_text(bound.time), of_span(bound.time, e.span)});
  return table.text("  ");
}

std::string idle_table(const Explanation& e) {
  constexpr std::size_t kShown = 8;
  Time sum{}, shown{};
  for (const Blame& blame : e.idle) sum += blame.time;
  TextTable table("lrr");
  for (std::size_t i = 0; i < std::min(kShown, e.idle.size()); ++i) {
    table.row({title_of(e.idle[i]), us_text(e.idle[i].time), of_span(e.idle[i].time, e.span)});
    shown += e.idle[i].time;
  }
  return fmt::format("\nwhy {0} is not all it takes: {1} us of its work, and {2} us without, while the end waits for\n",
                     e.idle_of, us_text(e.span - sum), us_text(sum)) +
         table.text("  ") + fmt::format("  ... the rest {}\n", us_text(sum - shown));
}

// Where the next path lies.
std::string alternative_table(const Explanation& e) {
  constexpr std::size_t kShown = 5;
  TextTable table("llr");
  for (std::size_t i = 0; i < std::min(kShown, e.alternatives.size()); ++i) {
    const Alternative& a = e.alternatives[i];
    table.row({a.phase, a.kernel, us_text(a.slack)});
  }
  return table.text("  ");
}

std::string longest_table(const Explanation& e, const TaskGraph& graph) {
  constexpr std::size_t kShown = 10;
  std::vector<PathStep> longest = e.path;
  std::stable_sort(longest.begin(), longest.end(),
                   [](const PathStep& a, const PathStep& b) { return a.end - a.start > b.end - b.start; });
  longest.resize(std::min(longest.size(), kShown));
  TextTable table("rrlll");
  table.row({"at us", "us", "phase", "kernel", "why"});
  for (const PathStep& step : longest) {
    table.row({us_text(step.start - e.start), us_text(step.end - step.start), phase_of(step, graph),
               short_kernel_name(graph.task_name(step.task)), name_of(step.reason)});
  }
  return table.text("  ");
}

}  // namespace

std::string to_json(const Explanation& e, const TaskGraph& graph, const std::optional<ModuleTable>& modules,
                    const std::optional<StepKernels>& kernels) {
  Json json;
  json.open().add("schema_version", 1).add("span_us", to_us(e.span));
  if (!e.schedule.empty()) json.add("schedule", e.schedule);
  json.open_list("blame");
  for (const Blame& blame : e.blame) json.open().add("what", title_of(blame)).add("us", to_us(blame.time), 6).close();
  json.close_list().open_list("critical_path");
  for (const PathStep& step : e.path) {
    json.open().add("phase", phase_of(step, graph)).add("kernel", short_kernel_name(graph.task_name(step.task)));
    json.add("stream", graph.streams()[graph.label(step.task).stream].id);
    json.add("start_us", to_us(step.start - e.start), 6).add("us", to_us(step.end - step.start), 6);
    json.add("why", name_of(step.reason)).close();
  }
  json.close_list().open_list("sensitivities");
  for (const SpanSensitivity& s : e.sensitivities) {
    json.open().add("what", s.what).add("elasticity", s.elasticity, 6);
    if (s.gains) {
      json.add("gain_10", s.gains->tenth, 6).add("gain_50", s.gains->half, 6).add("gain_100", s.gains->all, 6);
      if (s.knee()) json.add("knee", *s.knee(), 4);
      json.add("then", s.gains->then);
    }
    json.close();
  }
  json.close_list().open_list("bounds");
  for (const Bound& bound : e.bounds) json.open().add("what", bound.what).add("us", to_us(bound.time)).close();
  json.close_list().add("bound_us", to_us(e.bounds.front().time));
  if (!e.idle_of.empty()) {
    json.add("idle_of", e.idle_of).open_list("idle");
    for (const Blame& blame : e.idle) json.open().add("what", title_of(blame)).add("us", to_us(blame.time)).close();
    json.close_list();
  }
  json.open_list("alternatives");
  for (const Alternative& a : e.alternatives) {
    json.open().add("phase", a.phase).add("kernel", a.kernel).add("slack_us", to_us(a.slack)).close();
  }
  json.close_list();
  if (e.period)
    json.add("period_us", to_us(e.period->layer)).add("period_layers", static_cast<double>(e.period->layers));
  if (e.known) add_known_shares(json, *e.known);
  if (modules) add_modules(json, *modules);
  if (kernels) add_kernels(json, *kernels);
  return json.close().text();
}

std::string to_table(const std::string& title, const Explanation& e, const TaskGraph& graph) {
  std::string text = fmt::format("{}: {} us\n", title, us_text(e.span));
  text += "\nalong the tasks that the end waited for, us\n" + reason_table(e);
  text += "\nwhat they are, the largest first\n" + blame_table(e);
  if (!e.sensitivities.empty()) {
    text += "\nwhat would shorten it: share of the span saved with so much less of its time\n" + sensitivity_table(e);
  }
  text += "\nwith these kernels in this order it takes no less than\n" + bound_table(e);
  if (e.period) {
    text += fmt::format("layers repeat: each of the {} that are alike takes {} us at least\n", e.period->layers,
                        us_text(e.period->layer));
  }
  if (!e.idle_of.empty()) text += idle_table(e);
  if (!e.alternatives.empty()) {
    text += "\noff that path, and on it if they took so much longer, us\n" + alternative_table(e);
  }
  text += "\nthe longest stretches\n" + longest_table(e, graph);
  return e.known ? text + "\n" + known_line("the kernels'", *e.known) + "\n" : text;
}

}  // namespace moeline
