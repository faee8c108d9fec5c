#include "experiments/cli/output/pipeline_search_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/cli/output/json.hpp"

namespace moeline {
namespace {

double gain(const PipelineStep& published, const PipelineStep& best) { return 1 - best.ms / published.ms; }

std::string gained(const PipelineStep& published, const PipelineStep& best) {
  return fmt::format("{:+.2f} %", 100 * (best.ms / published.ms - 1));
}

std::string row(const char* what, const PipelineStep& step, const std::string& note) {
  return fmt::format("{:<34} {:>10.1f} {:>8.1f}   {}{}\n", what, step.ms, step.memory_gib, note,
                     step.fits ? "" : "does not fit memory");
}

std::string row(const ScheduleAnswer& s) {
  const std::string best =
      s.best ? fmt::format("{:>10.1f} {:>8.1f}", s.best->ms, s.best->memory_gib) : fmt::format("{:>19}", "none fits");
  const std::string counts = fmt::format("{} of {:.4g} simulated, {:.0f} ruled out, {} too large", s.evaluated, s.plans,
                                         s.pruned, s.too_large);
  return fmt::format("{:<34} {} {:>10.1f}   {}{}\n", s.schedule, best, s.floor_ms, counts,
                     s.exhaustive ? "" : "; not every one was tried");
}

void add(Json& json, const char* key, const PipelineStep& step) {
  json.open(key).add("schedule", step.schedule).add("step_ms", step.ms).add("memory_gib", step.memory_gib);
  json.flag("fits_memory", step.fits).add("set", step.changes).close();
}

}  // namespace

std::string pipeline_search_table(const PipelineRequest& request, const PipelineAnswer& a) {
  std::string text = fmt::format("{}\n\n{:<34} {:>10} {:>8}\n", request.scenario.string(), "", "step, ms", "GiB");
  text += row("the scenario's pipeline, by slots", a.published, "");
  text += row("the best found", a.best, fmt::format("{}, {}  ", gained(a.published, a.best), a.best.schedule));
  text += row("the scenario's, by operators", a.published_by_operators, "");
  text +=
      row("the best, by operators", a.best_by_operators, gained(a.published_by_operators, a.best_by_operators) + "  ");
  text += fmt::format("{:<34} {:>10.1f} {:>8}   by slots alone, shared out equally\n\n",
                      "nothing searched for takes less", a.floor_ms, "");
  text += fmt::format("{:<34} {:>10} {:>8} {:>10}\n", "by schedule", "step, ms", "GiB", "floor, ms");
  for (const ScheduleAnswer& schedule : a.schedules) text += row(schedule);
  for (const auto& [change, why] : a.refused) text += fmt::format("not searched, {}: {}\n", change, why);
  if (a.best.changes.empty()) return text + "\nno pipeline searched for is faster than the scenario's\n";
  return text + fmt::format("\nsimulate it with --set '{}'\n", fmt::join(a.best.changes, "' --set '"));
}

std::string pipeline_search_json(const PipelineRequest& request, const PipelineAnswer& a) {
  Json json;
  json.open().add("schema_version", 1).add("scenario", request.scenario.string());
  add(json, "published", a.published);
  add(json, "best", a.best);
  add(json, "published_by_operators", a.published_by_operators);
  add(json, "best_by_operators", a.best_by_operators);
  json.add("gain", gain(a.published_by_operators, a.best_by_operators), 6).add("floor_ms", a.floor_ms);
  json.open_list("schedules");
  for (const ScheduleAnswer& s : a.schedules) {
    json.open().add("schedule", s.schedule).add("floor_ms", s.floor_ms).add("plans", s.plans, 0);
    json.add("evaluated", s.evaluated).add("pruned", s.pruned, 0).add("too_large", s.too_large);
    json.flag("exhaustive", s.exhaustive);
    if (s.best) add(json, "best", *s.best);
    json.close();
  }
  json.close_list().open_list("not_searched");
  for (const auto& [change, why] : a.refused) json.open().add("set", change).add("why", why).close();
  json.close_list().close();
  return json.text();
}

}  // namespace moeline
