#include "experiments/cli/output/validate_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/text_table.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
namespace {

using Cells = std::vector<std::string>;
using Names = std::set<std::string>;

// To as many digits as the measurement has, and to three at least.
std::string shown(double value, const Fact& fact) {
  const int enough = std::abs(value) >= 1000 ? 0 : std::abs(value) >= 10 ? 1 : 3;
  return fmt::format("{:.{}f}", value, std::max(fact.decimals(), enough));
}

Names null_names(const ScoredSubject& scored) {
  Names names;
  for (const ScoredFact& each : scored.facts) {
    for (const auto& [name, value] : each.prediction.nulls) names.insert(name);
  }
  return names;
}

bool has_bands(const ScoredSubject& scored) {
  return std::any_of(scored.facts.begin(), scored.facts.end(),
                     [](const ScoredFact& each) { return each.prediction.band.has_value(); });
}

// Between which values nine in ten samples lie, and whether the measurement does.
Cells band_cells(const ScoredFact& scored) {
  const std::optional<Band>& band = scored.prediction.band;
  if (!band) return {"", "", ""};
  return {shown(band->p5, scored.fact), shown(band->p95, scored.fact), scored.in_band() ? "inside" : "outside"};
}

std::string verdict(const std::optional<Gate>& gate, Verdict verdict) {
  if (!gate) return "";
  return fmt::format("{}: {}", gate->text, verdict == Verdict::failed ? "FAILED" : name_of(verdict));
}

Cells fact_row(const ScoredFact& scored, const Names& nulls) {
  const Fact& fact = scored.fact;
  const Prediction& prediction = scored.prediction;
  if (!prediction.skipped.empty())
    return {fact.key, fact.printed, "", fact.unit, "", "", name_of(fact.status), name_of(scored.verdict)};
  Cells cells = {fact.key,
                 fact.printed,
                 shown(prediction.value, fact),
                 fact.unit,
                 signed_percent(scored.error()),
                 fmt::format("{}", prediction.constants.count()),
                 name_of(fact.status),
                 verdict(fact.gate, scored.verdict)};
  for (const std::string& name : nulls) {
    cells.push_back(prediction.nulls.contains(name) ? signed_percent(scored.null_error(name)) : "");
  }
  const Cells band = band_cells(scored);
  if (prediction.band) cells.insert(cells.end(), band.begin(), band.end());
  return cells;
}

using Measure = std::string (*)(const FactErrors& errors);

Cells summary_row(const ScoredSubject& scored, const char* name, const Names& nulls, Measure measure,
                  const std::string& gate = "") {
  Cells cells = {name, "", "", "", measure(scored.errors), "", "", gate};
  for (const std::string& null : nulls) {
    const auto found = scored.nulls.find(null);
    cells.push_back(found == scored.nulls.end() ? "" : measure(found->second));
  }
  return cells;
}

void add_summary(const ScoredSubject& scored, const Names& nulls, TextTable& table) {
  if (scored.errors.facts < 2) return;
  const auto mean = [](const FactErrors& errors) { return percent(errors.mean_abs_error); };
  const auto worst = [](const FactErrors& errors) { return signed_percent(errors.worst_error); };
  const auto bias = [](const FactErrors& errors) { return signed_percent(errors.mean_error); };
  table.row(summary_row(scored, "mean |error|", nulls, mean, verdict(scored.subject.mean_gate, scored.mean_verdict)));
  table.row(summary_row(scored, "worst error", nulls, worst));
  table.row(summary_row(scored, "mean error", nulls, bias));
}

// What stands once below a table: whose constants, and what single facts are not.
std::string remarks(const ScoredSubject& scored) {
  Names sets;
  Names left_out;
  Names lines;
  for (const ScoredFact& each : scored.facts) {
    const Prediction& prediction = each.prediction;
    sets.insert(prediction.fitted_on.begin(), prediction.fitted_on.end());
    if (!prediction.left_out.empty()) left_out.insert(prediction.left_out);
    if (!prediction.skipped.empty()) lines.insert("skipped: " + prediction.skipped);
    if (!prediction.remark.empty()) lines.insert(each.fact.key + ": " + prediction.remark);
    if (each.fact.status == FactStatus::fitted)
      lines.insert(fmt::format("{} is no prediction, fitted: {}", each.fact.key, each.fact.fitted));
  }
  std::string text;
  if (!sets.empty()) text += fmt::format("  constants of {}", fmt::join(sets, " and "));
  if (!left_out.empty()) text += fmt::format(", each row by a fit without its own: {}", fmt::join(left_out, "; "));
  if (!text.empty()) text += "\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string subject_table(const ScoredSubject& scored) {
  const Names nulls = null_names(scored);
  TextTable table(has_bands(scored) ? std::string("lrrlrrll") + std::string(nulls.size(), 'r') + "rrl" : "lrrlrrllr");
  Cells head = {"", "measured", "predicted", "unit", "error", "n", "status", "gate"};
  head.insert(head.end(), nulls.begin(), nulls.end());
  if (has_bands(scored)) head.insert(head.end(), {"5 %", "95 %", "measured"});
  table.row(head);
  for (const ScoredFact& each : scored.facts) table.row(fact_row(each, nulls));
  add_summary(scored, nulls, table);
  return fmt::format("{}: {}\n{}{}\n", scored.subject.name, scored.subject.about, table.text("  "), remarks(scored));
}

// The null model that comes nearest: what there is to beat.
Cells best_null(const ScoredSubject& scored) {
  const auto better = [](const auto& a, const auto& b) { return a.second.mean_abs_error < b.second.mean_abs_error; };
  const auto best = std::min_element(scored.nulls.begin(), scored.nulls.end(), better);
  if (best == scored.nulls.end()) return {};
  return {percent(best->second.mean_abs_error), best->first};
}

// What was known of the facts that are scores: "not fitted", or how many of each where they differ.
std::string status_of(const ScoredSubject& scored) {
  std::map<FactStatus, int> counts;
  for (const ScoredFact& each : scored.facts) counts[each.fact.status] += each.is_score() ? 1 : 0;
  std::erase_if(counts, [](const auto& status) { return status.second == 0; });
  if (counts.size() == 1) return name_of(counts.begin()->first);
  Cells parts;
  for (const auto& [status, count] : counts) parts.push_back(fmt::format("{} {}", count, name_of(status)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string gates_of(const ScoredSubject& scored) {
  Cells parts;
  for (const Verdict verdict : {Verdict::failed, Verdict::passed, Verdict::skipped}) {
    if (const int count = scored.gates(verdict); count > 0)
      parts.push_back(fmt::format("{} {}", count, name_of(verdict)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Why no fact of a subject is a score.
std::string without_score(const ScoredSubject& scored) {
  const bool skipped = std::any_of(scored.facts.begin(), scored.facts.end(),
                                   [](const ScoredFact& each) { return each.verdict == Verdict::skipped; });
  return name_of(skipped ? Verdict::skipped : Verdict::fitted);
}

Cells summary_line(const ScoredSubject& scored) {
  const FactErrors& errors = scored.errors;
  if (errors.facts == 0) return {scored.subject.name, "0", "", "", "", "", without_score(scored)};
  Cells cells = {scored.subject.name,
                 fmt::format("{}", errors.facts),
                 status_of(scored),
                 percent(errors.mean_abs_error),
                 signed_percent(errors.worst_error),
                 signed_percent(errors.mean_error),
                 gates_of(scored)};
  const Cells null = best_null(scored);
  cells.insert(cells.end(), null.begin(), null.end());
  return cells;
}

std::string summary_table(const std::vector<ScoredSubject>& subjects) {
  TextTable table("lrlrrrlrl");
  table.row({"", "facts", "status", "mean |e|", "worst e", "mean e", "gates", "mean |e|", "of the best null"});
  for (const ScoredSubject& each : subjects) table.row(summary_line(each));
  return table.text();
}

// Families that were scored on measurements left out of their fit, as the profile records them.
std::string held_out_table(const KernelSets& kernel_sets) {
  TextTable table("lrrrrr");
  table.row({"kernels left out of the fit in turn", "rows", "median |e|", "95 %", "worst e", "mean e"});
  for (const auto& [name, set] : kernel_sets) {
    for (const auto& [family, fit] : set.fits) {
      if (!fit.held_out) continue;
      table.row({name + " " + family, fmt::format("{}", fit.kernels), percent(fit.median_abs_error),
                 percent(fit.p95_abs_error), signed_percent(fit.worst_error), signed_percent(fit.mean_error)});
    }
  }
  return table.text();
}

std::string sources(const KernelSets& kernel_sets) {
  std::string text;
  for (const auto& [name, set] : kernel_sets) {
    text += fmt::format("{}: {} constants; {}\n", name, set.known_constants(), set.source);
  }
  return text;
}

As error_as_written(double least = kAny) { return {.decimals = 5, .least = least}; }

// To as many digits as it is written with in its file.
As tolerance_as() { return {.decimals = 12}; }

struct NullPrediction {
  double predicted = 0, error = 0;
};

std::vector<std::pair<std::string, NullPrediction>> nulls_of(const ScoredFact& scored) {
  std::vector<std::pair<std::string, NullPrediction>> nulls;
  for (const auto& [name, value] : scored.prediction.nulls) nulls.push_back({name, {value, scored.null_error(name)}});
  return nulls;
}

bool is_known(const ScoredFact& scored) { return scored.prediction.skipped.empty(); }

std::vector<ScoredFact> facts_of(const Validation& validation) {
  std::vector<ScoredFact> facts;
  for (const ScoredSubject& each : validation.subjects) facts.insert(facts.end(), each.facts.begin(), each.facts.end());
  return facts;
}

Fields<ScoredFact> fact_fields_of_output() {
  const As value{.decimals = kByAmount, .least = kAny};
  const auto null = Fields<NullPrediction>()
                        .add("predicted", "its value", &NullPrediction::predicted, value)
                        .add("error", "its error", &NullPrediction::error, error_as_written());
  return Fields<ScoredFact>()
      .add("id", "SUBJECT.KEY", [](auto& s) { return s.fact.id; })
      .add("quantity", "what was measured", [](auto& s) { return s.fact.quantity; })
      .add(
          "predicted", "null: skipped", [](auto& s) { return or_null(only_if(is_known(s), s.prediction.value)); },
          value)
      .add(
          "measured", "as printed", [](auto& s) { return s.fact.measured; }, value)
      .add("unit", "of both", [](auto& s) { return s.fact.unit; })
      .add(
          "error", "null: skipped", [](auto& s) { return or_null(only_if(is_known(s), s.error())); },
          error_as_written())
      .add("p5", "5 % quantile of several draws",
           [](auto& s) { return only_if(s.prediction.band.has_value(), s.prediction.band.value_or(Band{}).p5); },
           {.least = kAny})
      .add("p95", "95 % quantile",
           [](auto& s) { return only_if(s.prediction.band.has_value(), s.prediction.band.value_or(Band{}).p95); },
           {.least = kAny})
      .add("in_band", "the measurement lies between them",
           [](auto& s) { return s.prediction.band ? std::optional(s.in_band()) : std::nullopt; })
      .add("gate", "it has a gate", [](auto& s) { return s.fact.gate.has_value(); })
      .add(
          "tolerance", "largest |error| that passes",
          [](auto& s) { return s.fact.gate ? std::optional(s.fact.gate->tolerance) : std::nullopt; }, tolerance_as())
      .add(
          "verdict",
          "passed or failed its gate; scored: it has none; fitted: it is no part of any score; skipped: data is absent",
          [](auto& s) { return name_of(s.verdict); }, {.words = words_to(Verdict::skipped)})
      .map("nulls", "null models by name", nulls_of, null)
      .add("setting", "under which conditions", [](auto& s) { return s.fact.setting; })
      .add("source", "who says so", [](auto& s) { return s.fact.source; })
      .add("how_read", "from where", [](auto& s) { return s.fact.how_read; })
      .add("status", "what those who made the constants knew", [](auto& s) { return name_of(s.fact.status); },
           {.words = words_to(FactStatus::blind)})
      .add("constants", "fitted constants that entered", [](auto& s) { return s.prediction.constants.count(); })
      .add("fitted_on", "kernel sets behind it",
           [](auto& s) {
             return std::vector<std::string>(s.prediction.fitted_on.begin(), s.prediction.fitted_on.end());
           })
      .add("left_out", "what the fit did not see", [](auto& s) { return if_any(s.prediction.left_out); })
      .add("remark", "of the prediction", [](auto& s) { return if_any(s.prediction.remark); })
      .add("fitted", "what of it constants were fitted to", [](auto& s) { return if_any(s.fact.fitted); })
      .add("skipped", "why", [](auto& s) { return if_any(s.prediction.skipped); });
}

Fields<FactErrors> error_fields() {
  return Fields<FactErrors>()
      .add("facts", "facts", &FactErrors::facts)
      .add("mean_abs_error", "mean |error|", &FactErrors::mean_abs_error, error_as_written(0))
      .add("worst_error", "largest error by its amount", &FactErrors::worst_error, error_as_written())
      .add("mean_error", "mean error", &FactErrors::mean_error, error_as_written());
}

Fields<ScoredSubject> subject_fields() {
  return Fields<ScoredSubject>()
      .add("subject", "name of the file", [](auto& s) { return s.subject.name; })
      .add("about", "one line", [](auto& s) { return s.subject.about; })
      .all(&ScoredSubject::errors, error_fields())
      .add(
          "mean_tolerance", "largest mean |error| that passes",
          [](auto& s) { return s.subject.mean_gate ? std::optional(s.subject.mean_gate->tolerance) : std::nullopt; },
          tolerance_as())
      .add("verdict", "of the mean",
           [](auto& s) { return only_if(s.subject.mean_gate.has_value(), name_of(s.mean_verdict)); },
           {.words = words_to(Verdict::skipped)})
      .map("nulls", "null models by name", &ScoredSubject::nulls, error_fields());
}

Fields<KernelSet> kernel_set_fields() {
  using Fit = std::pair<const std::string, FamilyFit>;
  const auto family =
      Fields<Fit>()
          .add("family", "family", &Fit::first)
          .add("kernels", "rows", [](auto& f) { return f.second.kernels; })
          .add("held_out", "of rows left out of the fit", [](auto& f) { return f.second.held_out; })
          .add(
              "median_abs_error", "median |error|", [](auto& f) { return f.second.median_abs_error; },
              error_as_written(0))
          .add(
              "p95_abs_error", "95 % quantile", [](auto& f) { return f.second.p95_abs_error; }, error_as_written(0))
          .add(
              "worst_error", "largest by its amount", [](auto& f) { return f.second.worst_error; }, error_as_written())
          .add(
              "mean_error", "mean", [](auto& f) { return f.second.mean_error; }, error_as_written());
  return Fields<KernelSet>()
      .add("kernel_set", "name", &KernelSet::name)
      .add("constants", "constants", &KernelSet::known_constants)
      .add("source", "whose measurements", &KernelSet::source)
      .list("families", "how well curves meet their measurements", &KernelSet::fits, family);
}

std::vector<KernelSet> sets_of(const Validation& validation) {
  std::vector<KernelSet> sets;
  for (const auto& [name, set] : validation.kernel_sets) sets.push_back(set);
  return sets;
}

// `baseline`: null where none was asked for.
Fields<Validation> validate_fields(const BaselineVerdict* baseline) {
  Fields<Validation> counts;
  for (const Verdict verdict : {Verdict::passed, Verdict::failed, Verdict::skipped}) {
    counts.add(name_of(verdict), name_of(verdict), [=](auto& v) { return gates(v.subjects, verdict); });
  }
  return output_fields<Validation>()
      .list("facts", "each fact", facts_of, fact_fields_of_output())
      .list("subjects", "each file of facts", &Validation::subjects, subject_fields())
      .list(
          "served", "studies of served models", [](auto& v) { return v.served.empty() ? nullptr : &v.served; },
          served_fields())
      .list(
          "pairs", "studies of pairs of settings", [](auto& v) { return v.pairs.empty() ? nullptr : &v.pairs; },
          pairs_fields())
      .list("kernel_sets", "kernel sets behind the predictions, but those of serving stacks", sets_of,
            kernel_set_fields())
      .object("gates", "how many gates", std::identity(), counts)
      .object(
          "baseline", "with --baseline: against the newest version there", [=](auto&) { return baseline; },
          baseline_fields());
}

}  // namespace

std::string to_json(const Validation& validation, const BaselineVerdict* baseline) {
  return validate_fields(baseline).json(validation);
}

std::string validate_schema() {
  return output_schema("validate",
                       "`moeline validate --format json`: predictions beside what was measured; error = predicted / "
                       "measured - 1",
                       validate_fields(nullptr).described());
}

std::string to_table(const Validation& validation) {
  const auto& [subjects, served_studies, pair_studies, kernel_sets] = validation;
  std::string text;
  for (const ScoredServed& served : served_studies) text += to_table(served) + "\n";
  for (const ScoredPairs& pairs : pair_studies) text += to_table(pairs) + "\n";
  if (subjects.empty()) return text;
  for (const ScoredSubject& each : subjects) text += subject_table(each);
  text += summary_table(subjects) + "\n";
  if (!kernel_sets.empty()) text += held_out_table(kernel_sets) + "\n" + sources(kernel_sets) + "\n";
  return text + fmt::format("gates: {} passed, {} failed, {} skipped\n", gates(subjects, Verdict::passed),
                            gates(subjects, Verdict::failed), gates(subjects, Verdict::skipped));
}

}  // namespace moeline
