#include "experiments/cli/output/compare_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "experiments/cli/output/learn_output.hpp"
#include "experiments/report/fields.hpp"
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

As error_of_pairs(double least = kAny) { return {.decimals = 5, .least = least}; }

// As kCauses has them.
constexpr std::array<const char*, kCauses.size()> kCauseMeanings = {"the rest",
                                                                    "what neighbours cost",
                                                                    "barriers and long pauses inside the phase",
                                                                    "shorter pauses",
                                                                    "kernels that only one side has more of",
                                                                    "two streams of the phase at once"};

Fields<Causes> cause_fields() {
  Fields<Causes> fields;
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    fields.add(fmt::format("{}_us", kCauses[i].name), kCauseMeanings[i], kCauses[i].time, {.least = kAny});
  }
  return fields;
}

Fields<FamilyDifference> family_fields() {
  return Fields<FamilyDifference>()
      .add("family", "class of kernels", [](auto& f) { return name_of(f.family); },
           {.words = words_to(KernelClass::unclassified)})
      .add("a_count", "kernels of a", &FamilyDifference::a_count)
      .add("b_count", "kernels of b", &FamilyDifference::b_count)
      .add("a_us", "us of a", &FamilyDifference::a)
      .add("b_us", "us of b", &FamilyDifference::b);
}

// Scored by its span; a phase of communication that is not, by its transfer.
struct ComparedPhase {
  const PhasePair& pair;
  const PhaseDifference& difference;
  bool scored, by_micro_batch;

  [[nodiscard]] Time time_of(const PhaseTimes& side) const { return scored ? side.span() : side.transfer; }
  [[nodiscard]] double error() const { return scored ? pair.error() : ratio_error(pair.a.transfer, pair.b.transfer); }
};

std::vector<ComparedPhase> compared_phases(const ComparisonReport& r) {
  const ByPair differences = by_pair(r);
  std::vector<ComparedPhase> phases;
  for (const auto* pairs : {&r.score.phases, &r.score.communication}) {
    const bool scored = pairs == &r.score.phases;
    for (const PhasePair& pair : *pairs)
      phases.push_back({pair, *differences.at(&pair), scored, r.score.by_micro_batch});
  }
  return phases;
}

Fields<ComparedPhase> compared_phase_fields() {
  return Fields<ComparedPhase>()
      .add("layer", "layer", [](auto& p) { return p.pair.a.layer; })
      .add("micro_batch", "micro-batch, where both sides have the same",
           [](auto& p) { return only_if(p.by_micro_batch, p.pair.a.micro_batch); })
      .add("phase", "its name", [](auto& p) { return p.pair.a.phase; })
      .add("scored", "it is part of the scores", [](auto& p) { return p.scored; })
      .add("a_us", "span of a; not scored: its transfer", [](auto& p) { return p.time_of(p.pair.a); })
      .add("b_us", "of b", [](auto& p) { return p.time_of(p.pair.b); })
      .add("a_span_us", "span of a", [](auto& p) { return only_if(!p.scored, p.pair.a.span()); })
      .add("b_span_us", "span of b", [](auto& p) { return only_if(!p.scored, p.pair.b.span()); })
      .add("error", "a / b - 1", &ComparedPhase::error, error_of_pairs())
      .add("a_barrier_us", "barrier of a", [](auto& p) { return only_if(!p.scored, p.pair.a.barrier); })
      .add("b_barrier_us", "barrier of b", [](auto& p) { return only_if(!p.scored, p.pair.b.barrier); })
      .object(
          "causes", "us by which a is longer, by cause", [](auto& p) { return p.difference.causes; }, cause_fields())
      .list(
          "families", "by class of kernels", [](auto& p) { return p.difference.families; }, family_fields());
}

Fields<StepPairs> step_pair_fields() {
  const auto pair =
      Fields<StepPair>()
          .add("kind", "kind of step", &StepPair::kind)
          .add("a_count", "steps of a", &StepPair::a_count)
          .add("b_count", "steps of b", &StepPair::b_count)
          .add("a_median_us", "median of a", &StepPair::a)
          .add("b_median_us", "median of b", &StepPair::b)
          .add(
              "error", "error of the median", [](auto& p) { return ratio_error(p.a, p.b); }, error_of_pairs());
  return Fields<StepPairs>()
      .list("steps", "of two traces with steps: kinds that both have", &StepPairs::common, pair)
      .add("steps_only_in_a", "kinds of steps", &StepPairs::only_in_a)
      .add("steps_only_in_b", "kinds of steps", &StepPairs::only_in_b);
}

Fields<Score> score_fields() {
  return Fields<Score>()
      .add("mean_abs_error", "mean |error| of the scored phases", &Score::mean_abs_error, error_of_pairs(0))
      .add("worst_abs_error", "largest |error|", &Score::worst_abs_error, error_of_pairs(0))
      .add("mean_error", "mean error", &Score::mean_error, error_of_pairs())
      .add("span_error", "error of the time in which any phase runs", &Score::span_error, error_of_pairs())
      .add("a_span_us", "us in which any phase of a runs", &Score::a_span)
      .add("b_span_us", "of b", &Score::b_span)
      .add("a_between_us", "us from the first to the last phase compared of a in which no phase runs",
           &Score::a_between)
      .add("b_between_us", "the same of b", &Score::b_between)
      .add("elapsed_error", "error of the sum of both: of the time from first to last", &Score::elapsed_error,
           error_of_pairs())
      .add("same_order", "phases follow each other on every stream in the same order", &Score::same_order);
}

std::vector<std::pair<std::string, Null>> nulls_by_name(const ComparisonReport& r) {
  std::vector<std::pair<std::string, Null>> nulls;
  for (const Null& null : r.nulls) nulls.emplace_back(null.name, null);
  return nulls;
}

Fields<ComparisonReport> compare_fields() {
  const auto null =
      Fields<Null>()
          .add(
              "mean_abs_error", "mean |error| of phases", [](auto& n) { return n.score.mean_abs_error; },
              error_of_pairs(0))
          .add(
              "worst_abs_error", "largest |error|", [](auto& n) { return n.score.worst_abs_error; }, error_of_pairs(0))
          .add(
              "span_error", "error of the time in which any phase runs",
              [](auto& n) { return only_if(n.has_span, n.score.span_error); }, error_of_pairs());
  return output_fields<ComparisonReport>()
      .all(&ComparisonReport::score, score_fields())
      .all(&ComparisonReport::steps, step_pair_fields())
      .list("phases",
            "pairs of phases: those that are scored by their spans, the others (communication) by their transfers",
            compared_phases, compared_phase_fields())
      .object(
          "causes", "sum over the scored phases", [](auto& r) { return sum_of(by_pair(r), r.score.phases); },
          cause_fields())
      .object(
          "communication_causes", "sum over the others",
          [](auto& r) { return sum_of(by_pair(r), r.score.communication); }, cause_fields())
      .list(
          "families", "of all phases", [](auto& r) { return by_family(r.differences); }, family_fields())
      .map("nulls", "null models by name: communication_free, everything_serial, copied_mean", nulls_by_name, null);
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

std::string to_json(const ComparisonReport& r) { return compare_fields().json(r); }

std::string compare_schema() {
  return output_schema("compare",
                       "`moeline compare A B --format json`: two timelines, phase by phase; error = a / b - 1",
                       {{"Two timelines with phases in common", compare_fields().described()},
                        {"A scenario and a step of a trace, by operators", operators_described()}});
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
