#include "hardware/price.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/curve.hpp"

namespace moeline {
namespace {

double evaluate(const Term& term, const KernelSet& kernels) { return kernels[term.constant] * term.feature_us; }

double GBps(double bytes, double us) { return us > 0 ? bytes / us / 1e3 : 0; }

Provenance provenance_of(const Operator& op, const PriceConditions& conditions, const KernelSet& kernels) {
  const auto fit = kernels.fits.find(name_of(op.family));
  if (fit == kernels.fits.end()) return Provenance::roofline;
  constexpr double kRounding = 1e-6;  // of the range as it stands in the profile
  const double size = size_of(op);
  const bool size_measured =
      size >= fit->second.smallest * (1 - kRounding) && size <= fit->second.largest * (1 + kRounding);
  const bool sms_measured = fit->second.most_sms == 0 || (is_all_to_all(op.family) && !conditions.overlapped) ||
                            (conditions.sms >= fit->second.fewest_sms && conditions.sms <= fit->second.most_sms);
  return size_measured && sms_measured ? Provenance::interpolated : Provenance::extrapolated;
}

// The slowest of NIC, NVLink and the SMs that copy.
void price_transfer(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                    const KernelSet& kernels, Price& price) {
  const double wire = evaluate(wire_term(op, machine, conditions.overlapped), kernels);
  const double copy = evaluate(copy_term(op, conditions.sms), kernels);
  const double nvlink = op.traffic.nvlink_bytes / (machine.nvlink_GBps * 1e3);
  price.solo_us = std::max({wire, copy, nvlink});
  price.bound_by = price.solo_us == wire ? "NIC" : price.solo_us == copy ? "SMs" : "NVLink";
  price.nvlink_GBps = GBps(op.traffic.nvlink_bytes, price.solo_us);
  price.nic_GBps = GBps(op.traffic.wire_bytes, price.solo_us);
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
  const int all_sms = static_cast<int>(machine.sms);
  Price price;
  price.hold = is_resident(op.family) ? Hold::resident : Hold::elastic;
  price.sms = is_resident(op.family) ? conditions.sms : op.blocks > 0 ? std::min(op.blocks, all_sms) : all_sms;
  if (op.family == Family::notify) {
    price.solo_us = 2 * machine.nic_latency_us;  // a message there and back; waiting for late ranks is not a cost
    price.provenance = Provenance::datasheet;
    return price;
  }
  price.provenance = provenance_of(op, conditions, kernels);
  if (is_all_to_all(op.family)) {
    price_transfer(op, conditions, machine, kernels, price);
  } else {
    for (const Term& term : compute_terms(op, conditions.sms, machine)) price.solo_us += evaluate(term, kernels);
  }
  price.solo_us = std::max(price.solo_us, op.bytes / (machine.hbm_GBps * 1e3));
  price.hbm_GBps = std::min(GBps(op.bytes, price.solo_us), machine.hbm_GBps);
  price.nvlink_GBps = std::min(price.nvlink_GBps, machine.nvlink_GBps);
  price.nic_GBps = std::min(price.nic_GBps, machine.nic_GBps);
  return price;
}

}  // namespace moeline
