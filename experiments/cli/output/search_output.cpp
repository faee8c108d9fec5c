#include "experiments/cli/output/search_output.hpp"

#include <fmt/format.h>

#include "experiments/cli/output/json.hpp"

namespace moeline {
namespace {

double gain(const PlanTimes& us) { return 1 - us.best / us.published; }
double gap(const SearchResult& r) { return r.us.best / r.bound_us - 1; }
std::string gained(const PlanTimes& us) { return fmt::format("{:+.2f} %", -100 * gain(us)); }

std::string row(const char* what, double us, const std::string& note) {
  return fmt::format("{:<32} {:>12.1f}   {}\n", what, us, note);
}

std::string counts(const SearchRequest& request, const SearchResult& r) {
  std::string text =
      fmt::format("{} plans simulated, {} ruled out by what they take at least, {} cannot run; of {:.0f} at most\n",
                  r.evaluated, r.pruned, r.impossible, r.plans);
  if (r.exhaustive) {
    text += fmt::format("every one was tried or ruled out: the best is the best there is; {} beat the scenario's own\n",
                        r.faster);
  } else if (r.proven) {
    text += "proven by the bound: nothing is faster\n";
  } else {
    text +=
        fmt::format("not every one was tried (seed {}): a better one may be left, down to the bound\n", request.seed);
  }
  return text;
}

void add(Json& json, const PlanTimes& us) { json.add("published_us", us.published).add("best_us", us.best); }

}  // namespace

std::string search_table(const SearchRequest& request, const SearchResult& r) {
  std::string text = fmt::format("{}\n\n{:<32} {:>12}\n", request.scenario.string(), "", "us a layer");
  text += row("the scenario's plan", r.us.published, "one rank that stands for all");
  text += row("best plan found", r.us.best, gained(r.us));
  text += row("no plan takes less than", r.bound_us, fmt::format("the best is {:.2f} % above", 100 * gap(r)));
  if (r.all_ranks_us) {
    text += row("scenario's plan, all ranks", r.all_ranks_us->published, "");
    text += row("best plan, all ranks", r.all_ranks_us->best, gained(*r.all_ranks_us));
  }
  text += "\n" + counts(request, r);
  if (!request.num_sms.empty()) text += fmt::format("communication SMs: {}\n", r.num_sms);
  return text + "\n" + r.text;
}

std::string search_json(const SearchRequest& request, const SearchResult& r, const std::string& plan) {
  Json json;
  json.open().add("schema_version", 1).add("scenario", request.scenario.string());
  add(json, r.us);
  json.add("bound_us", r.bound_us).add("gain", gain(r.us), 6).add("gap", gap(r), 6);
  json.add("evaluated", r.evaluated).add("pruned", r.pruned).add("impossible", r.impossible);
  json.add("plans", r.plans, 0)
      .add("faster_than_published", r.faster)
      .flag("exhaustive", r.exhaustive)
      .flag("proven", r.proven);
  if (r.all_ranks_us) {
    json.open("all_ranks");
    add(json, *r.all_ranks_us);
    json.add("gain", gain(*r.all_ranks_us), 6).close();
  }
  json.open("choices").add("num_sms", r.num_sms).add("side", r.plan.side).add("plan_text", r.text).close();
  json.add("plan", plan).add("seed", static_cast<std::int64_t>(request.seed)).close();
  return json.text();
}

}  // namespace moeline
