#include "experiments/cli/output/compare_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/cli/output/json.hpp"
#include "measured/names.hpp"

namespace moeline {
namespace {

// Differences by their pairs of the report's score.
using ByPair = std::map<const PhasePair*, const PhaseDifference*>;

ByPair by_pair(const ComparisonReport& r) {
  ByPair found;
  for (const PhaseDifference& d : r.differences) found[d.pair] = &d;
  return found;
}

Causes sum_of(const ByPair& differences, const std::vector<PhasePair>& pairs) {
  Causes sum;
  for (const PhasePair& pair : pairs) sum.add(differences.at(&pair)->causes);
  return sum;
}

// What the scored phases are.
const char* scored_work(const ComparisonReport& r) {
  return r.score.phases.front().b.is_communication() ? "communication" : "computation";
}

void add_causes(const char* key, const Causes& causes, Json& json) {
  json.open(key);
  for (const NamedCause& cause : kCauses) json.add(fmt::format("{}_us", cause.name), to_us(causes.*cause.time));
  json.close();
}

void add_families(const std::vector<FamilyDifference>& families, Json& json) {
  json.open_list("families");
  for (const FamilyDifference& f : families) {
    json.open().add("family", name_of(f.family)).add("a_count", f.a_count).add("b_count", f.b_count);
    json.add("a_us", to_us(f.a)).add("b_us", to_us(f.b)).close();
  }
  json.close_list();
}

void open_pair(const ComparisonReport& r, const PhasePair& pair, bool scored, Json& json) {
  json.open().add("layer", pair.a.layer);
  if (r.score.by_micro_batch) json.add("micro_batch", pair.a.micro_batch);
  json.add("phase", pair.a.phase).flag("scored", scored);
}

void close_pair(const PhaseDifference& difference, Json& json) {
  add_causes("causes", difference.causes, json);
  add_families(difference.families, json);
  json.close();
}

void add_steps(const StepPairs& steps, Json& json) {
  json.open_list("steps");
  for (const StepPair& pair : steps.common) {
    json.open().add("kind", pair.kind).add("a_count", pair.a_count).add("b_count", pair.b_count);
    json.add("a_median_us", to_us(pair.a)).add("b_median_us", to_us(pair.b));
    json.add("error", ratio_error(pair.a, pair.b), 5).close();
  }
  json.close_list().add("steps_only_in_a", steps.only_in_a).add("steps_only_in_b", steps.only_in_b);
}

std::string steps_table(const StepPairs& steps) {
  std::string text = fmt::format("{:<48} {:>8} {:>8} {:>12} {:>12} {:>9}\n", "steps of one kind", "a steps", "b steps",
                                 "a median us", "b median us", "error");
  for (const StepPair& pair : steps.common) {
    text += fmt::format("{:<48} {:>8} {:>8} {:>12.0f} {:>12.0f} {:>+8.1f}%\n", short_phase_name(pair.kind),
                        pair.a_count, pair.b_count, to_us(pair.a), to_us(pair.b), 100 * ratio_error(pair.a, pair.b));
  }
  if (!steps.only_in_a.empty()) text += fmt::format("only in a: {}\n", some_of(steps.only_in_a));
  if (!steps.only_in_b.empty()) text += fmt::format("only in b: {}\n", some_of(steps.only_in_b));
  return text + "\nBelow: the median step of each kind, by its layers where both sides have equally many.\n\n";
}

std::string score_row(const std::string& name, const Score& score, bool has_span = true) {
  const std::string span = has_span ? fmt::format("{:>+9.1f} %", 100 * score.span_error) : "        n/a";
  return fmt::format("{:<24} {:>9.1f} % {:>9.1f} % {:>+9.1f} % {}\n", name, 100 * score.mean_abs_error,
                     100 * score.worst_abs_error, 100 * score.mean_error, span);
}

// With micro-batches as an overlap plan writes it: "mlp 1".
std::string phase_name(const ComparisonReport& r, const PhasePair& pair) {
  std::string name = short_phase_name(pair.a.phase);
  return r.score.by_micro_batch ? fmt::format("{} {}", name, pair.a.micro_batch) : name;
}

// Of the phases' column, whatever their names.
std::size_t name_width(const ComparisonReport& r) {
  std::size_t width = r.steps ? std::string_view("phase: mean of its layers").size() : 12;
  for (const auto* pairs : {&r.score.phases, &r.score.communication}) {
    for (const PhasePair& pair : *pairs) width = std::max(width, phase_name(r, pair).size());
  }
  return width;
}

std::string phases_table(const ComparisonReport& r, std::size_t width) {
  std::string text =
      fmt::format("{:>5} {:<{}} {:>10} {:>10} {:>9}\n", "layer", "phase", width, "a us", "b us", "error");
  for (const PhasePair& pair : r.score.phases) {
    text += fmt::format("{:>5} {:<{}} {:>10.0f} {:>10.0f} {:>+8.1f}%\n", pair.a.layer, phase_name(r, pair), width,
                        to_us(pair.a.span()), to_us(pair.b.span()), 100 * pair.error());
  }
  return text;
}

// A row for all layers of a step: a model has dozens that are alike.
std::string step_phases_table(const ComparisonReport& r, std::size_t width) {
  struct Row {
    std::int64_t layers = 0;
    Time a{}, b{};
    double worst = 0;
  };
  std::vector<std::string> names;
  std::map<std::string, Row> rows;
  for (const PhasePair& pair : r.score.phases) {
    const auto [found, added] = rows.try_emplace(phase_name(r, pair));
    if (added) names.push_back(found->first);
    Row& row = found->second;
    ++row.layers;
    row.a += pair.a.span();
    row.b += pair.b.span();
    if (std::abs(pair.error()) > std::abs(row.worst)) row.worst = pair.error();
  }
  std::string text = fmt::format("{:>6} {:<{}} {:>10} {:>10} {:>9} {:>12}\n", "layers", "phase: mean of its layers",
                                 width, "a us", "b us", "error", "worst layer");
  for (const std::string& name : names) {
    const Row& row = rows.at(name);
    text += fmt::format("{:>6} {:<{}} {:>10.1f} {:>10.1f} {:>+8.1f}% {:>+11.1f}%\n", row.layers, name, width,
                        to_us(row.a / row.layers), to_us(row.b / row.layers), 100 * ratio_error(row.a, row.b),
                        100 * row.worst);
  }
  return text;
}

std::string causes_row(const std::string& what, std::size_t width, const Causes& causes) {
  std::string row = fmt::format("{:<{}} {:>+10.0f}", what, width, to_us(causes.total()));
  for (const NamedCause& cause : kCauses) row += fmt::format(" {:>+10.0f}", to_us(causes.*cause.time));
  return row + "\n";
}

std::string causes_table(const ComparisonReport& r) {
  constexpr std::size_t kShown = 10;
  const std::size_t width = std::max<std::size_t>(26, name_width(r) + std::string_view(" of layer 10").size());
  std::string text = fmt::format("\n{:<{}} {:>10}", "a - b, us: largest first", width, "in all");
  for (const NamedCause& cause : kCauses) text += fmt::format(" {:>10}", cause.name);
  text += "\n";
  for (std::size_t i = 0; i < std::min(kShown, r.differences.size()); ++i) {
    const PhaseDifference& d = r.differences[i];
    text += causes_row(fmt::format("{} of layer {}", phase_name(r, *d.pair), d.pair->a.layer), width, d.causes);
  }
  if (r.differences.size() > kShown) text += fmt::format("... {} more\n", r.differences.size() - kShown);
  const ByPair differences = by_pair(r);
  text += causes_row(fmt::format("all of {}", scored_work(r)), width, sum_of(differences, r.score.phases));
  if (!r.score.communication.empty()) {
    text += causes_row("all of communication", width, sum_of(differences, r.score.communication));
  }
  return text;
}

std::string families_table(const ComparisonReport& r) {
  std::string text = fmt::format("\n{:<26} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}\n", "kernel family", "a kernels",
                                 "b kernels", "a us", "b us", "a - b", "error");
  for (const FamilyDifference& f : by_family(r.differences)) {
    text += fmt::format("{:<26} {:>10} {:>10} {:>10.0f} {:>10.0f} {:>+10.0f} {:>+8.1f}%\n", name_of(f.family),
                        f.a_count, f.b_count, to_us(f.a), to_us(f.b), to_us(f.a - f.b), 100 * ratio_error(f.a, f.b));
  }
  return text;
}

// Errors are of a against b. Who compares before with after asks the other way round.
std::string from_a_to_b(Time a, Time b) {
  const double change = ratio_error(b, a);
  return fmt::format("b takes {:.1f} % {} than a", 100 * std::abs(change), change < 0 ? "less" : "longer");
}

}  // namespace

std::string to_json(const ComparisonReport& r) {
  const Score& result = r.score;
  const ByPair differences = by_pair(r);
  Json json;
  json.open().add("schema_version", 1);
  json.add("mean_abs_error", result.mean_abs_error, 5).add("worst_abs_error", result.worst_abs_error, 5);
  json.add("mean_error", result.mean_error, 5).add("span_error", result.span_error, 5);
  json.add("a_span_us", to_us(result.a_span)).add("b_span_us", to_us(result.b_span));
  json.add("a_between_us", to_us(result.a_between)).add("b_between_us", to_us(result.b_between));
  json.add("elapsed_error", result.elapsed_error(), 5);
  json.flag("same_order", result.same_order);
  if (r.steps) add_steps(*r.steps, json);
  json.open_list("phases");
  for (const PhasePair& pair : result.phases) {
    open_pair(r, pair, true, json);
    json.add("a_us", to_us(pair.a.span())).add("b_us", to_us(pair.b.span())).add("error", pair.error(), 5);
    close_pair(*differences.at(&pair), json);
  }
  for (const PhasePair& pair : result.communication) {
    open_pair(r, pair, false, json);
    json.add("a_us", to_us(pair.a.transfer)).add("b_us", to_us(pair.b.transfer));
    json.add("a_span_us", to_us(pair.a.span())).add("b_span_us", to_us(pair.b.span()));
    json.add("error", ratio_error(pair.a.transfer, pair.b.transfer), 5);
    json.add("a_barrier_us", to_us(pair.a.barrier)).add("b_barrier_us", to_us(pair.b.barrier));
    close_pair(*differences.at(&pair), json);
  }
  json.close_list();
  add_causes("causes", sum_of(differences, result.phases), json);
  add_causes("communication_causes", sum_of(differences, result.communication), json);
  add_families(by_family(r.differences), json);
  json.open("nulls");
  for (const Null& null : r.nulls) {
    json.open(null.name).add("mean_abs_error", null.score.mean_abs_error, 5);
    json.add("worst_abs_error", null.score.worst_abs_error, 5);
    if (null.has_span) json.add("span_error", null.score.span_error, 5);
    json.close();
  }
  return json.close().close().text();
}

std::string to_table(const ComparisonReport& r) {
  const Score& result = r.score;
  const std::size_t width = name_width(r);
  std::string text = fmt::format("a: {}\nb: {}\n\n", r.a, r.b);
  if (r.steps) text += steps_table(*r.steps);
  text += r.steps ? step_phases_table(r, width) : phases_table(r, width);
  if (!result.communication.empty()) {
    text +=
        "\nCommunication, not scored: of a prediction one draw, or what one rank alone is expected to wait. Times and\n"
        "errors are of the transfers alone; the causes below are of whole spans.\n";
    text += fmt::format("{:>5} {:<{}} {:>10} {:>10} {:>9} {:>12} {:>12}\n", "layer", "phase", width, "a us", "b us",
                        "error", "a barrier us", "b barrier us");
  }
  for (const PhasePair& pair : result.communication) {
    text +=
        fmt::format("{:>5} {:<{}} {:>10.0f} {:>10.0f} {:>+8.1f}% {:>12.0f} {:>12.0f}\n", pair.a.layer,
                    phase_name(r, pair), width, to_us(pair.a.transfer), to_us(pair.b.transfer),
                    100 * ratio_error(pair.a.transfer, pair.b.transfer), to_us(pair.a.barrier), to_us(pair.b.barrier));
  }
  text += causes_table(r) + families_table(r);
  text += fmt::format("\norder of phases on every stream: {}\n", result.same_order ? "the same" : "DIFFERENT");
  text += fmt::format("phases compared take: a {:.3f} ms, b {:.3f} ms, {:+.1f} %\n", to_us(result.a_span) / 1e3,
                      to_us(result.b_span) / 1e3, 100 * result.span_error);
  text += fmt::format("between phases:       a {:.3f} ms, b {:.3f} ms\n", to_us(result.a_between) / 1e3,
                      to_us(result.b_between) / 1e3);
  text += fmt::format("from first to last:   a {:.3f} ms, b {:.3f} ms, {:+.1f} %: {}\n\n",
                      to_us(result.a_elapsed()) / 1e3, to_us(result.b_elapsed()) / 1e3, 100 * result.elapsed_error(),
                      from_a_to_b(result.a_elapsed(), result.b_elapsed()));
  text += fmt::format("{:<24} {:>11} {:>11} {:>11} {:>11}\n", fmt::format("phases of {}", scored_work(r)), "mean |e|",
                      "worst |e|", "mean e", "span e");
  text += score_row("a against b", result);
  for (const Null& null : r.nulls) text += score_row("null: " + null.name, null.score, null.has_span);
  return text;
}

}  // namespace moeline
