#include "hardware/price.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/curve.hpp"

namespace moeline {
namespace {

double evaluate(const Term& term, const KernelSet& kernels) { return kernels[term.constant] * term.feature_us; }

double GBps(double bytes, double us) { return us > 0 ? bytes / us / 1e3 : 0; }

// Covered by the measurements behind a fit: at this size, on this many SMs and ranks.
bool covers(const KernelSet& kernels, const std::string& family, const Operator& op, int sms) {
  constexpr double kRounding = 0.01;  // a size that differs by less is the same, to the noise of measurement
  const auto found = kernels.fits.find(family);
  if (found == kernels.fits.end()) return false;
  const FamilyFit& fit = found->second;
  const double size = size_of(op);
  const bool size_measured = size >= fit.smallest * (1 - kRounding) && size <= fit.largest * (1 + kRounding);
  const bool sms_measured = fit.most_sms == 0 || (sms >= fit.fewest_sms && sms <= fit.most_sms);
  const bool ranks_measured =
      fit.most_ranks == 0 || (op.traffic.ranks >= fit.fewest_ranks && op.traffic.ranks <= fit.most_ranks);
  return size_measured && sms_measured && ranks_measured;
}

Provenance inside_or_outside(bool covered) { return covered ? Provenance::interpolated : Provenance::extrapolated; }

// The slowest of NIC, NVLink and the SMs that copy. Beside compute kernels all of it takes longer, by the factor by
// which the measured transfers of that kind did: more than the SMs and bandwidth they visibly share explain.
void price_transfer(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                    const KernelSet& kernels, Price& price) {
  const double wire = evaluate(wire_term(op, machine, false), kernels);
  const double copy = evaluate(copy_term(op, conditions.sms), kernels);
  const double nvlink = op.traffic.nvlink_bytes / (machine.nvlink_GBps * 1e3);
  const double alone = std::max({wire, copy, nvlink});
  const double slowdown =
      kernels[wire_term(op, machine, true).constant] / kernels[wire_term(op, machine, false).constant];
  price.solo_us = conditions.overlapped ? alone * slowdown : alone;
  price.nvlink_GBps = GBps(op.traffic.nvlink_bytes, price.solo_us);
  price.nic_GBps = GBps(op.traffic.wire_bytes, price.solo_us);
  if (alone == nvlink) {
    price.bound_by = "NVLink";
    price.provenance = Provenance::datasheet;
    return;
  }
  price.bound_by = alone == wire ? "NIC" : "SMs";
  const std::string fit = alone == copy ? "sm_copies" : conditions.overlapped ? name_of(op.family) : "all_to_all_alone";
  const bool condition_measured = alone == wire || !conditions.overlapped;
  price.provenance = inside_or_outside(condition_measured && machine.communicates_like(kernels.fitted_on) &&
                                       covers(kernels, fit, op, conditions.sms));
}

void price_compute(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                   const KernelSet& kernels, Price& price) {
  if (!kernels.fits.contains(name_of(op.family))) {
    price.provenance = Provenance::roofline;  // nothing is known but the floors
    return;
  }
  for (const Term& term : compute_terms(op, conditions.sms, machine)) price.solo_us += evaluate(term, kernels);
  price.provenance = inside_or_outside(machine.computes_like(kernels.fitted_on) &&
                                       covers(kernels, name_of(op.family), op, conditions.sms));
}

// No kernel beats the peaks of HBM and of the tensor cores it runs on.
double floor_us(const Operator& op, const MachineFacts& machine) {
  const bool fp8 = op.family <= Family::gemm_fp8_grouped;
  return std::max(op.bytes / (machine.hbm_GBps * 1e3),
                  op.flops / ((fp8 ? machine.fp8_tflops : machine.bf16_tflops) * 1e6));
}

}  // namespace

const char* name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::interpolated:
      return "interpolated";
    case Provenance::extrapolated:
      return "extrapolated";
    case Provenance::roofline:
      return "roofline";
    case Provenance::datasheet:
      return "datasheet";
  }
  return "";
}

Price price(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
            const KernelSet& kernels) {
  MOELINE_CHECK(conditions.sms > 0 && conditions.sms <= machine.sms, std::to_string(conditions.sms));
  Price price;
  price.hold = is_resident(op.family) ? Hold::resident : Hold::elastic;
  price.sms = op.blocks > 0 ? std::min(op.blocks, conditions.sms) : conditions.sms;
  if (op.family == Family::notify) {
    price.solo_us = 2 * machine.nic_latency_us;  // a message there and back; waiting for late ranks is not a cost
    price.provenance = Provenance::datasheet;
    return price;
  }
  if (is_all_to_all(op.family)) {
    price_transfer(op, conditions, machine, kernels, price);
  } else {
    price_compute(op, conditions, machine, kernels, price);
  }
  if (const double floor = floor_us(op, machine); floor > price.solo_us) {
    price.solo_us = floor;
    if (!price.bound_by.empty()) price.bound_by = "HBM";
  }
  price.hbm_GBps = std::min(GBps(op.bytes, price.solo_us), machine.hbm_GBps);
  price.nvlink_GBps = std::min(price.nvlink_GBps, machine.nvlink_GBps);
  price.nic_GBps = std::min(price.nic_GBps, machine.nic_GBps);
  return price;
}

}  // namespace moeline
