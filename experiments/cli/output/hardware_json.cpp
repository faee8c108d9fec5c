// Machines as a program reads them.
#include "base/file.hpp"
#include "experiments/cli/output/family_coverage.hpp"
#include "experiments/cli/output/json.hpp"
#include "experiments/cli/output/list_json.hpp"

namespace moeline {
namespace {

void add_facts(Json& json, const HardwareProfile& profile) {
  json.open("facts");
  for (const MachineFact& fact : list_facts(profile.facts)) {
    json.open(fact.key).exact("value", fact.value).add("unit", fact.unit);
    json.add("source", profile.sources.at(fact.key)).close();
  }
  json.close();
}

// Facts in which the machine that the set was fitted on differs from this one.
void add_differences(Json& json, const KernelSet& set, const MachineFacts& here) {
  json.open("fitted_on_other");
  for (const FactDifference& fact : differences(set.fitted_on, here)) json.exact(fact.key, fact.fitted_on);
  json.close();
}

void add_constants(Json& json, const KernelSet& set) {
  json.open("constants");
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (!std::isnan(set.constants[i])) json.exact(constant_name(i), set.constants[i]);
  }
  json.close();
}

void add_range(Json& json, const MeasuredRange& range) {
  json.open("measured");
  for (const auto& [dimension, bounds] : range) {
    json.open(name_of(dimension)).exact("low", bounds.low).exact("high", bounds.high).close();
  }
  json.close();
}

void add_correction(Json& json, const Correction& correction) {
  if (correction.empty()) return;
  json.open("correction").open("knots");
  for (const GridAxis& axis : correction.axes) json.add(name_of(axis.dimension), static_cast<int>(axis.knots.size()));
  json.close().exact("curve_median_abs_error", correction.curve_median_abs_error);
  json.exact("curve_p95_abs_error", correction.curve_p95_abs_error).close();
}

void add_family(Json& json, const std::string& family, const KernelSet& complete, const MachineFacts& facts) {
  const FamilyFit& fit = complete.fits.at(family);
  json.open().add("family", family).add("kernel_set", fit.kernel_set);
  const std::string other = other_constants(family, complete, facts);
  json.add("constants_of", other.empty() ? fit.kernel_set : other);
  json.add("rows", fit.kernels).flag("held_out", fit.held_out);
  if (fit.form != nullptr) {
    json.add("form", fit.form->name).open("form_constants");
    for (std::size_t i = 0; i < fit.constants.size(); ++i) json.exact(fit.form->parts[i].name, fit.constants[i]);
    json.close().exact("median_error", fit.median_error);
  }
  json.exact("median_abs_error", fit.median_abs_error).exact("p95_abs_error", fit.p95_abs_error);
  json.exact("worst_error", fit.worst_error).exact("mean_error", fit.mean_error);
  add_correction(json, fit.correction);
  add_range(json, fit.range);
  json.close();
}

void add_kernel_set(Json& json, const KernelSet& set, const HardwareProfile& profile) {
  const KernelSet complete = profile.kernels(set.name);
  json.open().add("name", set.name).add("date", set.date).add("source", set.source);
  json.flag("by_name_only", set.by_name_only);
  json.add("stack", name_of(set.stack)).add("clock", name_of(set.clock));
  add_differences(json, set, profile.facts);
  if (!set.published_errors.empty()) {
    json.open("published_errors");
    for (const auto& [phase, error] : set.published_errors) json.exact(phase.c_str(), error);
    json.close();
  }
  add_constants(json, set);
  json.open_list("families");
  for (const auto& [family, fit] : complete.fits) add_family(json, family, complete, profile.facts);
  json.close_list();
  const FamiliesWithoutFit others = families_without_fit(complete, profile.facts);
  json.open("families_without_measurements").add("by_gemm_fp8", others.by_gemm_fp8);
  json.add("by_casts", others.by_casts);
  json.add("by_facts", others.by_facts).add("by_roofline", others.by_roofline).add("refused", others.refused);
  json.close().close();
}

}  // namespace

std::string machines_json() {
  Json json;
  json.open().add("schema_version", 1).open_list("hardware");
  for (const std::string& name : names_in("hwprofiles")) {
    const HardwareProfile profile = load_profile(name);
    json.open().add("name", profile.name).add("kernel_sets", profile.set_names());
    add_facts(json, profile);
    json.close();
  }
  return json.close_list().close().text();
}

std::string machine_json(const HardwareProfile& profile) {
  Json json;
  json.open().add("schema_version", 1).add("name", profile.name);
  add_facts(json, profile);
  json.open_list("kernel_sets");
  for (const KernelSet& set : sets_to_choose(profile)) add_kernel_set(json, set, profile);
  json.close_list().open_list("carried_over");
  for (const KernelSet& set : profile.carried_over) {
    json.open().add("name", set.name).add("from", set.origins.front());
    add_differences(json, set, profile.facts);
    json.close();
  }
  return json.close_list().close().text();
}

}  // namespace moeline
