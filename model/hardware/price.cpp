#include "hardware/price.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/curve.hpp"

namespace moeline {
namespace {

double GBps(double bytes, double us) { return us > 0 ? bytes / us / 1e3 : 0; }

// Covered by the measurements behind a fit: at this size, on this many SMs and ranks, with this many query rows.
bool covers(const FamilyFit& fit, const Operator& op, int sms) {
  constexpr double kRounding = 0.01;  // a size that differs by less is the same, to the noise of measurement
  const double size = size_of(op);
  const bool size_measured = size >= fit.smallest * (1 - kRounding) && size <= fit.largest * (1 + kRounding);
  const bool sms_measured = fit.most_sms == 0 || (sms >= fit.fewest_sms && sms <= fit.most_sms);
  const bool ranks_measured =
      fit.most_ranks == 0 || (op.traffic.ranks >= fit.fewest_ranks && op.traffic.ranks <= fit.most_ranks);
  const double rows = shared_rows(op);
  const bool rows_measured = fit.most_rows == 0 || (rows >= fit.fewest_rows && rows <= fit.most_rows);
  return size_measured && sms_measured && ranks_measured && rows_measured;
}

// `measured`: the machine and the conditions are those of the fit's measurements.
void set_provenance(const KernelSet& kernels, const std::string& family, bool measured, const Operator& op, int sms,
                    Price& price) {
  price.provenance = Provenance::extrapolated;
  const auto fit = kernels.fits.find(family);
  if (fit == kernels.fits.end()) return;
  price.kernel_set = fit->second.kernel_set;
  if (measured && !fit->second.other_machine && covers(fit->second, op, sms))
    price.provenance = Provenance::interpolated;
}

// us and what binds; the constants that made them are noted in the price.
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

// What the links carry meanwhile. What stays in the node takes the NIC where the library sends it there.
void set_links(const Operator& op, const KernelSet& kernels, Price& price) {
  const Traffic& traffic = op.traffic;
  if (traffic.stage == Stage::issue || traffic.stage == Stage::receive) return;  // the wire carries the bytes
  const bool low_latency = is_low_latency(op.family);
  const bool over_nic = kernels[low_latency ? Constant::low_latency_own_node : Constant::normal_own_node] > 0;
  const double own_node = low_latency ? traffic.nvlink_bytes : traffic.rdma_bytes - traffic.wire_bytes;
  price.nic_GBps = GBps(traffic.wire_bytes + (over_nic ? own_node : 0), price.solo_us);
  price.nvlink_GBps = GBps(low_latency && over_nic ? 0 : traffic.nvlink_bytes, price.solo_us);
}

// Beside compute kernels all of a transfer takes longer, by the factor by which the measured transfers of that kind
// did: more than the SMs and bandwidth they visibly share explain.
void price_normal(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                  const KernelSet& kernels, Price& price) {
  const double slowdown = conditions.overlapped ? kernels[overlapped_slowdown(op.family)] : 1;
  if (conditions.overlapped && !std::isnan(slowdown)) {
    price.solo_us *= slowdown;
    price.constants.set(static_cast<std::size_t>(overlapped_slowdown(op.family)));
  }
  const bool by_copies = price.bound_by == "SMs";
  const std::string alone = by_copies ? "sm_copies" : "all_to_all_alone";
  const bool overlap_measured = conditions.overlapped && !by_copies;
  const bool measured = machine.communicates_like(kernels.fitted_on) && (overlap_measured || !conditions.overlapped);
  set_provenance(kernels, overlap_measured ? name_of(op.family) : alone, measured, op, conditions.sms, price);
}

// The tables list whole transfers. The kernels hold SMs for a part of the time, half of it to issue and half to
// receive; between them the wire runs alone, for no less than its bytes take at the links' peaks.
void price_low_latency(const Operator& op, const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  const double whole = price.solo_us;
  const double hold = evaluate_noting(hold_curve(op), kernels, price).us;
  const double wire = std::max(std::isnan(hold) ? whole : whole - hold, std::min(whole, links_us(op, machine)));
  const Stage stage = op.traffic.stage;
  if (stage == Stage::wire) price.solo_us = wire;
  if (stage == Stage::issue || stage == Stage::receive) price.solo_us = (whole - wire) / 2;
  if (stage == Stage::wire) {
    price.hold = Hold::nothing;
    price.sms = 0;
  }
  set_provenance(kernels, "low_latency", machine.communicates_like(kernels.fitted_on), op, 0, price);
}

void price_transfer(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                    const KernelSet& kernels, Price& price) {
  const Evaluation alone = evaluate_noting(transfer_curve(op, conditions.sms, machine), kernels, price);
  const double links = links_us(op, machine);
  const bool known = !std::isnan(alone.us);
  price.solo_us = known ? std::max(alone.us, links) : links;
  price.bound_by = known ? alone.bound : "roofline";
  if (is_low_latency(op.family)) {
    price_low_latency(op, machine, kernels, price);
  } else {
    price_normal(op, conditions, machine, kernels, price);
  }
  if (!known) price.provenance = Provenance::roofline;
  set_links(op, kernels, price);
}

// The family whose measurements tell about this one: its own; for a BF16 GEMM the dense BF16 ones, or the FP8 ones.
std::string measured_family(Family family, const KernelSet& kernels) {
  if (kernels.fits.contains(name_of(family)) || !is_gemm(family) || is_fp8(family)) return name_of(family);
  return name_of(kernels.knows("gemm_bf16") ? Family::gemm_bf16 : Family::gemm_fp8);
}

void price_compute(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                   const KernelSet& kernels, Price& price) {
  const std::string family = measured_family(op.family, kernels);
  const auto fit = kernels.fits.find(family);
  const TileSet tiles = fit == kernels.fits.end() ? kernels.tiles : fit->second.tiles;
  Curve curve = compute_curve(op, conditions.sms, machine, tiles);
  if (!is_fp8(op.family) && family == name_of(Family::gemm_fp8)) curve = with_fp8_constants(std::move(curve));
  const Evaluation alone = evaluate_noting(curve, kernels, price);
  if (fit == kernels.fits.end() || std::isnan(alone.us)) {
    price.provenance = Provenance::roofline;  // nothing is known but the floors
    return;
  }
  price.solo_us = alone.us;
  price.bound_by = alone.bound;
  const bool measured = machine.computes_like(kernels.fitted_on) && like_measured(op) && family == name_of(op.family);
  set_provenance(kernels, family, measured, op, conditions.sms, price);
}

// Even a kernel with next to nothing to do takes as long as the small ones do.
double shortest_us(const KernelSet& kernels) {
  const double small = kernels[Constant::small];
  return std::isnan(small) ? 0 : small;
}

// No kernel beats the peaks of HBM and of the tensor cores it runs on.
double floor_us(const Operator& op, const MachineFacts& machine) {
  return std::max(bytes_at_peak_us(op.bytes, machine.hbm_GBps),
                  flops_at_peak_us(op.flops, is_fp8(op.family) ? machine.fp8_tflops : machine.bf16_tflops));
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

double roofline_us(const Operator& op, const MachineFacts& machine) {
  return std::max(floor_us(op, machine), links_us(op, machine));
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
    price.solo_us = std::max(price.solo_us, shortest_us(kernels));
  }
  if (const double floor = floor_us(op, machine); floor > price.solo_us) {
    price.solo_us = floor;
    price.bound_by = "roofline";
  }
  price.hbm_GBps = std::min(GBps(op.bytes, price.solo_us), machine.hbm_GBps);
  price.nvlink_GBps = std::min(price.nvlink_GBps, machine.nvlink_GBps);
  price.nic_GBps = std::min(price.nic_GBps, machine.nic_GBps);
  return price;
}

}  // namespace moeline
