#include "experiments/cli/output/search_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/cli/output/json.hpp"

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

void add(Json& json, const PlanTimes& us) { json.add("published_us", us.published).add("best_us", us.best); }

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

std::string search_json(const SearchRequest& request, const SearchResult& r, const std::string& plan) {
  Json json;
  json.open().add("schema_version", 1).add("scenario", request.scenario.string());
  add(json, r.us);
  json.add("bound_us", r.bound_us).add("floor_us", r.floor_us).add("gain", gain(r.us), 6).add("gap", gap(r), 6);
  json.add("evaluated", r.evaluated)
      .add("pruned", r.pruned, 0)
      .add("impossible", r.impossible, 0)
      .add("left_out", r.left_out, 0);
  json.add("plans", r.plans, 0).add("faster_than_published", r.faster).flag("exhaustive", r.exhaustive);
  json.add("chosen_us", r.chosen_us).open("run");
  json.add("published_ms", r.run_ms.published).add("best_ms", r.run_ms.best).add("gain", gain(r.run_ms), 6).close();
  if (r.all_ranks_us) {
    json.open("all_ranks");
    add(json, *r.all_ranks_us);
    json.add("gain", gain(*r.all_ranks_us), 6).close();
  }
  json.open_list("not_searched");
  for (const RefusedVariants& refused : r.refused) {
    json.open().add("why", refused.why).add("variants", refused.count).close();
  }
  json.close_list();
  json.open("choices").add("schedule", r.best.scenario.schedule).add("num_sms", r.best.scenario.comm.num_sms);
  json.add("pieces", r.plan.pieces).add("pieces_by", word_of(r.plan.pieces_by)).add("side", r.plan.side);
  json.add("split", r.plan.split, 2).add("attention_cut", word_of(r.plan.attention_cut));
  json.add("set", r.changes).add("plan_text", r.text).close();
  json.add("plan", plan).close();
  return json.text();
}

}  // namespace moeline
