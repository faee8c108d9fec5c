#include "experiments/cli/output/search_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "experiments/report/fields.hpp"
#include "schedules/scenario/schedule_kinds.hpp"

namespace moeline {
namespace {

double gain(const PlanTimes& us) { return 1 - us.best / us.published; }
double gap(const SearchResult& r) { return r.us.best / r.bound_us - 1; }
std::string gained(const PlanTimes& us) { return fmt::format("{:+.2f} %", -100 * gain(us)); }

std::string row(const char* what, double us, const std::string& note) {
  return fmt::format("{:<32} {:>12.1f}   {}\n", what, us, note);
}

std::string counts(const SearchResult& r) {
  std::string text =
      fmt::format("{} plans simulated, {:.0f} ruled out by what they take at least, {:.0f} cannot run; of {:.0f}\n",
                  r.evaluated, r.pruned, r.impossible, r.plans);
  if (r.exhaustive) {
    return text +
           fmt::format("the best is the best there is; {} of those simulated beat the scenario's own\n", r.faster);
  }
  return text + fmt::format("{:.0f} were not tried: a better one may be among them, down to the bound\n", r.left_out);
}

// What decides in the end.
std::string chosen(const SearchResult& r) {
  std::string ranks = r.all_ranks_us ? "all ranks simulated" : "";
  if (r.samples > 1) ranks += fmt::format(", medians of {} samples", r.samples);
  std::string text = fmt::format("\n{:<32} {:>12} {:>12}\n", "", "ms in all", "us a layer");
  const auto row = [&](const char* what, double ms, double us, const std::string& note) {
    text += fmt::format("{:<32} {:>12.3f} {:>12.1f}   {}\n", what, ms, us, note);
  };
  const PlanTimes us = r.all_ranks_us.value_or(PlanTimes{r.us.published, r.chosen_us});
  row("the scenario's plan", r.run_ms.published, us.published, ranks);
  row("the plan below", r.run_ms.best, us.best, gained(r.run_ms));
  return text;
}

As share_as(double least = kAny) { return {.decimals = 6, .least = least}; }
As count_as() { return {.decimals = 0}; }

// The scenario's plan and the best one. `unit`: of the keys.
Fields<PlanTimes> times_fields(const std::string& unit, const char* published, const char* best) {
  return Fields<PlanTimes>()
      .add("published_" + unit, published, &PlanTimes::published)
      .add("best_" + unit, best, &PlanTimes::best);
}

Fields<PlanTimes> gain_fields() {
  return Fields<PlanTimes>().add(
      "gain", "1 - best over published", [](auto& us) { return gain(us); }, share_as());
}

Fields<PlanTimes> chosen_fields(const std::string& unit, const std::string& of) {
  return times_fields(unit, (of + "by the scenario's plan").c_str(), (of + "by the chosen one").c_str())
      .all(std::identity(), gain_fields());
}

// `plan`: the file that it was written to, or "".
struct FoundPlan {
  const SearchRequest& request;
  const SearchResult& result;
  std::string plan;
};

Fields<SearchResult> choice_fields() {
  return Fields<SearchResult>()
      .add("schedule", "what runs when", [](auto& r) { return r.best.scenario.schedule; }, {.words = schedule_names()})
      .add("num_sms", "SMs of communication", [](auto& r) { return r.best.scenario.comm.num_sms; })
      .add("pieces", "of dispatch, experts and combine", [](auto& r) { return r.plan.pieces; })
      .add("pieces_by", "what a piece has a part of", [](auto& r) { return word_of(r.plan.pieces_by); },
           {.words = words_of<PiecesBy>()})
      .add("side", "phases that use the side stream", [](auto& r) { return r.plan.side; })
      .add("split", "of micro-batch 0", [](auto& r) { return r.plan.split; }, {.decimals = 2, .most = 1})
      .add("attention_cut", "where attn-0 ends", [](auto& r) { return word_of(r.plan.attention_cut); },
           {.words = words_of<AttentionCut>()})
      .add("set", "changes of the scenario, each for --set", &SearchResult::changes)
      .add("plan_text", "the plan as YAML", &SearchResult::text);
}

Fields<SearchResult> result_fields() {
  const auto refused = Fields<RefusedVariants>()
                           .add("why", "why", &RefusedVariants::why)
                           .add("variants", "how many", &RefusedVariants::count);
  return Fields<SearchResult>()
      .all(&SearchResult::us, times_fields("us", "us of a layer by the scenario's plan", "by the best plan found"))
      .add("bound_us", "no plan takes less", &SearchResult::bound_us)
      .add("floor_us", "no order of these kernels takes less", &SearchResult::floor_us)
      .all(&SearchResult::us, gain_fields())
      .add("gap", "best over bound - 1", gap, share_as(0))
      .add("evaluated", "plans simulated", &SearchResult::evaluated)
      .add("pruned", "plans ruled out", &SearchResult::pruned, count_as())
      .add("impossible", "plans that cannot run", &SearchResult::impossible, count_as())
      .add("left_out", "plans that were not tried", &SearchResult::left_out, count_as())
      .add("plans", "all plans", &SearchResult::plans, count_as())
      .add("faster_than_published", "of those simulated", &SearchResult::faster)
      .add("exhaustive", "the best is the best there is", &SearchResult::exhaustive)
      .add("chosen_us", "us of a layer by the plan that is chosen in the end", &SearchResult::chosen_us)
      .object("run", "the whole run", &SearchResult::run_ms, chosen_fields("ms", "ms "))
      .object("all_ranks", "us of a layer with all ranks simulated", &SearchResult::all_ranks_us,
              chosen_fields("us", ""))
      .list("not_searched", "variants that cannot be", &SearchResult::refused, refused)
      .object("choices", "what was chosen", std::identity(), choice_fields());
}

Fields<FoundPlan> plan_search_fields() {
  return output_fields<FoundPlan>()
      .add("scenario", "file", [](auto& f) { return f.request.scenario.string(); })
      .all(
          [](auto& f) -> auto& { return f.result; }, result_fields())
      .add("plan", "file that it was written to; empty: none", &FoundPlan::plan);
}

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

struct FoundPipeline {
  const PipelineRequest& request;
  const PipelineAnswer& answer;
};

Fields<PipelineStep> pipeline_fields() {
  return Fields<PipelineStep>()
      .add("schedule", "what runs when", &PipelineStep::schedule, {.words = schedule_names()})
      .add("step_ms", "ms of its step", &PipelineStep::ms)
      .add("memory_gib", "GiB of the fullest rank", &PipelineStep::memory_gib)
      .add("fits_memory", "the GPU has that much", &PipelineStep::fits)
      .add("set", "changes of the scenario, each for --set", &PipelineStep::changes);
}

Fields<ScheduleAnswer> answer_of_schedule() {
  return Fields<ScheduleAnswer>()
      .add("schedule", "what runs when", &ScheduleAnswer::schedule, {.words = schedule_names()})
      .add("floor_ms", "nothing of it takes less", &ScheduleAnswer::floor_ms)
      .add("plans", "ways to share the layers out", &ScheduleAnswer::plans, count_as())
      .add("evaluated", "simulated", &ScheduleAnswer::evaluated)
      .add("pruned", "ruled out", &ScheduleAnswer::pruned, count_as())
      .add("too_large", "that do not fit memory", &ScheduleAnswer::too_large)
      .add("exhaustive", "all were looked at", &ScheduleAnswer::exhaustive)
      .object("best", "absent where none fits", &ScheduleAnswer::best, pipeline_fields());
}

Fields<PipelineAnswer> pipeline_answer_fields() {
  using Refused = std::map<std::string, std::string>::value_type;
  const auto refused = Fields<Refused>().add("set", "the change", &Refused::first).add("why", "why", &Refused::second);
  return Fields<PipelineAnswer>()
      .object("published", "the scenario's, by slots", &PipelineAnswer::published, pipeline_fields())
      .object("best", "the best found, by slots", &PipelineAnswer::best, pipeline_fields())
      .object("published_by_operators", "the scenario's, by operators", &PipelineAnswer::published_by_operators,
              pipeline_fields())
      .object("best_by_operators", "the best, by operators", &PipelineAnswer::best_by_operators, pipeline_fields())
      .add(
          "gain", "1 - best over published, by operators",
          [](auto& a) { return 1 - a.best_by_operators.ms / a.published_by_operators.ms; }, share_as())
      .add("floor_ms", "nothing searched for takes less, by slots", &PipelineAnswer::floor_ms)
      .list("schedules", "by schedule", &PipelineAnswer::schedules, answer_of_schedule())
      .list("not_searched", "what cannot be", &PipelineAnswer::refused, refused);
}

Fields<FoundPipeline> pipeline_search_fields() {
  return output_fields<FoundPipeline>()
      .add("scenario", "file", [](auto& f) { return f.request.scenario.string(); })
      .all(
          [](auto& f) -> auto& { return f.answer; }, pipeline_answer_fields());
}

}  // namespace

std::string search_table(const SearchRequest& request, const SearchResult& r) {
  std::string text = fmt::format("{}\n\n{:<32} {:>12}\n", request.scenario.string(), "", "us a layer");
  text += row("the scenario's plan", r.us.published, "one rank that stands for all");
  text += row("best plan found", r.us.best, gained(r.us));
  text += row("no plan takes less than", r.bound_us, fmt::format("the best is {:.2f} % above", 100 * gap(r)));
  text += row("no order of these kernels", r.floor_us, "by data, streams and links alone");
  text += chosen(r) + "\n" + counts(r);
  for (const RefusedVariants& refused : r.refused) {
    text += fmt::format("not searched ({} variants): {}\n", refused.count, refused.why);
  }
  if (!r.changes.empty()) {
    text += fmt::format("simulate it with --set {} --set overlap=FILE\n", fmt::join(r.changes, " --set "));
  }
  return text + "\n" + r.text;
}

std::string search_json(const SearchRequest& request, const SearchResult& result, const std::string& plan) {
  return plan_search_fields().json({request, result, plan});
}

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

std::string pipeline_search_json(const PipelineRequest& request, const PipelineAnswer& answer) {
  return pipeline_search_fields().json({request, answer});
}

std::string search_schema() {
  return output_schema("search",
                       "`moeline search SCENARIO --format json`: of plans of overlapped phases, or of whole pipelines",
                       {{"The best plan of overlapped phases", plan_search_fields().described()},
                        {"The best pipeline", pipeline_search_fields().described()}});
}

}  // namespace moeline
