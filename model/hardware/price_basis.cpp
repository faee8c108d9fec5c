#include "hardware/price_basis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "curves/curve.hpp"
#include "moe/fused_experts.hpp"

namespace moeline::price_parts {

void set_provenance(const KernelSet& kernels, const Basis& basis, const Dimensions& dimensions, Price& price) {
  bool at_a_point = true;
  if (!basis.doubt.empty()) price.note.reasons.insert(basis.doubt);
  std::set<std::string> sets;  // that the measurements are of
  for (const std::string& family : basis.families) {
    const auto found = kernels.fits.find(family);
    if (found == kernels.fits.end()) {
      price.note.reasons.insert(kNoMeasurement);
      continue;
    }
    const FamilyFit& fit = found->second;
    if (price.kernel_set.empty()) price.kernel_set = fit.kernel_set;
    sets.insert(fit.kernel_set);
    if (fit.other_machine) price.note.reasons.insert(kOtherMachine);
    for (const Outside& each : outside(fit.range, dimensions)) price.note.add(each);
    at_a_point = at_a_point && is_point(fit.range);
  }
  for (std::size_t i = 0; i < kConstants; ++i) {
    const bool elsewhere = price.constants.test(i) && !sets.empty() && !sets.contains(kernels.origins[i]);
    if (elsewhere) price.note.reasons.insert(fmt::format("constants of {}", kernels.origins[i]));
  }
  price.provenance = !price.note.empty() ? Provenance::extrapolated
                     : at_a_point        ? Provenance::measured
                                         : Provenance::interpolated;
}

void set_roofline(Price& price) {
  price.provenance = Provenance::roofline;
  price.note = {.reasons = {kNoMeasurement}, .outside = {}};
}

const FamilyFit* fit_with_form(const std::string& family, const KernelSet& kernels) {
  const auto fit = kernels.fits.find(family);
  return fit != kernels.fits.end() && fit->second.form != nullptr ? &fit->second : nullptr;
}

const FamilyFit* measured_fit(const Operator& op, const std::vector<std::string>& families, const KernelSet& kernels) {
  // Of that name, on this machine or another.
  const auto is_chosen = [&](const std::string& set) {
    return set == kernels.fitted_name() || set.ends_with(": " + kernels.fitted_name());
  };
  const FamilyFit* measured = fit_with_form(op.measured_as, kernels);
  if (measured == nullptr || is_chosen(measured->kernel_set)) return measured;
  const bool has_own = std::any_of(families.begin(), families.end(), [&](const std::string& family) {
    const auto fit = kernels.fits.find(family);
    return fit != kernels.fits.end() && (!kernels.of_a_stack || is_chosen(fit->second.kernel_set));
  });
  return has_own ? nullptr : measured;
}

Evaluation evaluate_noting(const Curve& curve, const KernelSet& kernels, Price& price) {
  const auto note = [&](const std::vector<Term>& terms) {
    for (const Term& term : terms) {
      if (term.feature > 0) price.constants.set(static_cast<std::size_t>(term.constant));
    }
  };
  note(curve.always);
  Evaluation result = evaluate(curve, kernels.constants);
  if (!result.bound.empty()) note(curve.branches[result.branch].terms);
  return result;
}

double us_by_form(const Operator& op, const FamilyFit& fit, double gain, double curve_us, int sms,
                  const MachineFacts& machine) {
  if (gain == 1) return curve_us;
  Operator hot = op;
  hot.hot = true;
  const double hot_us = evaluate(fit.form->curve(hot, sms, machine), fit.constants).us;
  return curve_us + (gain - 1) * std::min(hot_us, curve_us);
}

double gain_of(const FamilyFit& fit, Dimensions at, const MachineFacts& machine) {
  if (fit.other_machine) return 1;
  const auto measured = fit.range.find(Dimension::sms);
  const auto sms = at.find(Dimension::sms);
  if (measured != fit.range.end() && sms != at.end() && sms->second == machine.sms) {
    sms->second = std::clamp(sms->second, measured->second.low, measured->second.high);
  }
  return gain_at(fit.correction, fit.range, at);
}

void doubt_price(const char* reason, Price& price) {
  price.provenance = Provenance::extrapolated;
  price.note.reasons.insert(reason);
}

namespace {

// Of latents in FP8 a kernel may multiply as they are; others turn them into BF16 before, and take that long.
double peak_tflops(const Operator& op, const MachineFacts& machine) {
  const double peak = machine.tflops(precision_of(op));
  const bool may_take_fp8 = op.family == Family::mla_decode && op.attention.cache != Precision::bf16;
  return may_take_fp8 ? std::max(peak, machine.fp8_tflops) : peak;
}

}  // namespace

double floor_us(const Operator& op, const MachineFacts& machine) {
  return std::max(op.hot ? 0 : bytes_at_peak_us(op.bytes, machine.hbm_GBps),
                  flops_at_peak_us(op.flops, peak_tflops(op, machine)));
}

void raise_to_floor(double floor_us, double rounding, Price& price) {
  if (floor_us <= price.solo_us) return;
  if (is_covered(price.provenance) && floor_us > rounding * price.solo_us) {
    price.provenance = Provenance::extrapolated;
    price.note.reasons.insert("the curve is below the machine's peaks");
  }
  price.solo_us = floor_us;
  price.bound_by = "roofline";
}

}  // namespace moeline::price_parts

namespace moeline {

double deviation_by_chance(const Operator& op, const FamilyFit& fit, int sms, const MachineFacts& machine) {
  if (op.experts.role == ExpertRole::none || op.rows_deviation <= 0) return 0;
  const ExpertRows load = expert_rows(op.experts);
  const double share = load.hit / load.local;  // probability that an expert gets any
  Operator more = op;
  more.experts.rows = load.rows + std::sqrt(load.local) * op.rows_deviation;
  more.experts.hit = std::min(load.local, load.hit + std::sqrt(load.local * share * (1 - share)));
  const auto us_of = [&](const Operator& each) {
    return evaluate(fit.form->curve(each, sms, machine), fit.constants).us;
  };
  const double us = us_of(op);
  return us > 0 ? std::max(0.0, us_of(more) / us - 1) : 0;
}

}  // namespace moeline
