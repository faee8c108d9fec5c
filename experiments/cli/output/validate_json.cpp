// The result as the interface contract has it.
#include <fmt/format.h>

#include "experiments/cli/output/json.hpp"
#include "experiments/cli/output/served_output.hpp"
#include "experiments/cli/output/validate_output.hpp"

namespace moeline {
namespace {

// As many decimals as tell a fraction from its measurement.
int decimals_of(double value) { return std::abs(value) < 10 ? 6 : 3; }

void add_nulls(Json& json, const ScoredFact& scored) {
  json.open("nulls");
  for (const auto& [name, value] : scored.prediction.nulls) {
    json.open(name).add("predicted", value, decimals_of(value)).add("error", scored.null_error(name), 5).close();
  }
  json.close();
}

void add_gate(Json& json, const ScoredFact& scored) {
  json.flag("gate", scored.fact.gate.has_value());
  if (scored.fact.gate) json.add("tolerance", scored.fact.gate->tolerance, 12);
  json.add("verdict", name_of(scored.verdict));
}

void add_fact(Json& json, const ScoredFact& scored) {
  const Fact& fact = scored.fact;
  const Prediction& prediction = scored.prediction;
  json.open().add("id", fact.id).add("quantity", fact.quantity);
  const bool known = prediction.skipped.empty();
  known ? json.add("predicted", prediction.value, decimals_of(prediction.value)) : json.null("predicted");
  json.add("measured", fact.measured, decimals_of(fact.measured)).add("unit", fact.unit);
  known ? json.add("error", scored.error(), 5) : json.null("error");
  if (prediction.band) {
    json.add("p5", prediction.band->p5).add("p95", prediction.band->p95).flag("in_band", scored.in_band());
  }
  add_gate(json, scored);
  add_nulls(json, scored);
  json.add("setting", fact.setting).add("source", fact.source).add("how_read", fact.how_read);
  json.add("status", name_of(fact.status)).add("constants", prediction.constants.count());
  json.add("fitted_on", std::vector<std::string>(prediction.fitted_on.begin(), prediction.fitted_on.end()));
  if (!prediction.left_out.empty()) json.add("left_out", prediction.left_out);
  if (!prediction.remark.empty()) json.add("remark", prediction.remark);
  if (!fact.fitted.empty()) json.add("fitted", fact.fitted);
  if (!known) json.add("skipped", prediction.skipped);
  json.close();
}

void add_errors(Json& json, const FactErrors& errors) {
  json.add("facts", errors.facts).add("mean_abs_error", errors.mean_abs_error, 5);
  json.add("worst_error", errors.worst_error, 5).add("mean_error", errors.mean_error, 5);
}

void add_subject(Json& json, const ScoredSubject& scored) {
  json.open().add("subject", scored.subject.name).add("about", scored.subject.about);
  add_errors(json, scored.errors);
  if (scored.subject.mean_gate) {
    json.add("mean_tolerance", scored.subject.mean_gate->tolerance, 12).add("verdict", name_of(scored.mean_verdict));
  }
  json.open("nulls");
  for (const auto& [name, errors] : scored.nulls) {
    json.open(name);
    add_errors(json, errors);
    json.close();
  }
  json.close().close();
}

void add_kernel_set(Json& json, const KernelSet& set) {
  json.open().add("kernel_set", set.name).add("constants", set.known_constants()).add("source", set.source);
  json.open_list("families");
  for (const auto& [family, fit] : set.fits) {
    json.open().add("family", family).add("kernels", fit.kernels).flag("held_out", fit.held_out);
    json.add("median_abs_error", fit.median_abs_error, 5).add("p95_abs_error", fit.p95_abs_error, 5);
    json.add("worst_error", fit.worst_error, 5).add("mean_error", fit.mean_error, 5).close();
  }
  json.close_list().close();
}

}  // namespace

std::string to_json(const Validation& validation, const BaselineVerdict* baseline) {
  const std::vector<ScoredSubject>& subjects = validation.subjects;
  Json json;
  json.open().add("schema_version", 1).open_list("facts");
  for (const ScoredSubject& subject : subjects) {
    for (const ScoredFact& fact : subject.facts) add_fact(json, fact);
  }
  json.close_list().open_list("subjects");
  for (const ScoredSubject& subject : subjects) add_subject(json, subject);
  json.close_list();
  if (!validation.served.empty()) {
    json.open_list("served");
    for (const ScoredServed& served : validation.served) add_served(json, served);
    json.close_list();
  }
  json.open_list("kernel_sets");
  for (const auto& [name, set] : validation.kernel_sets) add_kernel_set(json, set);
  json.close_list().open("gates");
  json.add("passed", gates(subjects, Verdict::passed)).add("failed", gates(subjects, Verdict::failed));
  json.add("skipped", gates(subjects, Verdict::skipped)).close();
  if (baseline != nullptr) add_baseline(json, *baseline);
  return json.close().text();
}

}  // namespace moeline
