#include "hardware/price_transfer.hpp"

#include <algorithm>
#include <cmath>

#include "curves/deep_ep_v2.hpp"
#include "curves/hybrid_ep.hpp"
#include "curves/nccl_channels.hpp"
#include "curves/nccl_tuning.hpp"
#include "curves/pplx.hpp"
#include "curves/topology.hpp"
#include "hardware/price_basis.hpp"
#include "moe/all_to_all.hpp"

namespace moeline::price_parts {
namespace {

constexpr const char* kUnequal = "ranks get unequal amounts";
constexpr const char* kDeepEpV2Times =
    "by published times of DeepEP's second version on H20, H100, H200, B200 and B300";

// What the links carry meanwhile, of several NICs each. What stays in the node takes the NIC where the library sends it
// there.
void set_links(const Operator& op, const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  const Traffic& traffic = op.traffic;
  if (traffic.stage == Stage::issue || traffic.stage == Stage::receive) return;  // the wire carries the bytes
  const bool low_latency = is_low_latency(op.family);
  const Constant own = low_latency ? Constant::low_latency_own_node : Constant::normal_own_node;
  const bool over_nic = !is_deep_ep_v2(op) && !is_pplx(op) && kernels[own] > 0;
  const double own_node = low_latency ? traffic.nvlink_bytes : traffic.rdma_bytes - traffic.wire_bytes;
  price.nic_GBps = GBps(traffic.wire_bytes + (over_nic ? own_node : 0), price.solo_us) / machine.nics_per_gpu;
  price.nvlink_GBps = GBps(low_latency && over_nic ? 0 : traffic.nvlink_bytes, price.solo_us);
}

// A measured time has a message's latency in it: not that of the machine it was measured on, but this one's.
double with_own_latency(double us, const Operator& op, const MachineFacts& machine, const KernelSet& kernels) {
  const int ranks = op.traffic.ranks;
  return std::max(0.0, us + farthest_latency_us(ranks, machine) - farthest_latency_us(ranks, kernels.fitted_on));
}

bool of_one_set(const KernelSet& kernels, const std::string& family, const std::string& other) {
  const auto a = kernels.fits.find(family), b = kernels.fits.find(other);
  return a == kernels.fits.end() || b == kernels.fits.end() || a->second.kernel_set == b->second.kernel_set;
}

// A stretch is a measured time over that of copies by the curve of the same set: only with it does it give that time
// back.
Basis basis_of_normal(const Operator& op, bool overlapped, const std::string& alone, const MachineFacts& machine,
                      const KernelSet& kernels) {
  if (!machine.communicates_like(kernels.fitted_on)) return {{overlapped ? name_of(op.family) : alone}, kOtherMachine};
  if (!overlapped) return {{alone}, ""};
  if (alone == "sm_copies") return {{alone}, "measured with nothing beside it"};
  const std::string& beside = name_of(op.family);
  return {{beside}, of_one_set(kernels, beside, alone) ? "" : "copy stretch of another kernel set"};
}

// Beside compute kernels copying by SMs takes longer, by what it did for that family in the measured chunk; the wire
// does not. So a transfer that the wire binds has the margin of its copies over the wire to lose first.
void set_disturbed_speed(const Operator& op, const Curve& curve, const KernelSet& kernels, Price& price) {
  const Constant stretch = copy_stretch(op.family);
  const double beside_us = copying_us(curve, kernels[stretch], kernels.constants);
  if (!(beside_us > price.solo_us)) return;  // the stretch or the copies may be unknown, too
  price.disturbed_speed = price.solo_us / beside_us;
  price.constants.set(static_cast<std::size_t>(stretch));
}

void price_normal(const Operator& op, const PriceConditions& conditions, const Curve& curve,
                  const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  if (conditions.disturbed()) set_disturbed_speed(op, curve, kernels, price);
  const std::string alone = price.bound_by == "SMs" ? "sm_copies" : "all_to_all_alone";
  const Basis basis = basis_of_normal(op, conditions.disturbed(), alone, machine, kernels);
  set_provenance(kernels, basis, dimensions_of(op, conditions.sms), price);
}

// A kernel that issues on fewer SMs than all copies as one of the normal mode does, where that is known; else it takes
// as much of the SMs' time.
double issue_us(double on_all_us, const Operator& op, int sms, const MachineFacts& machine, const KernelSet& kernels,
                Price& price) {
  if (sms >= static_cast<int>(machine.sms)) return on_all_us;
  doubt_price("issued by few SMs", price);
  const double copy_us_per_MB = kernels[Constant::dispatch_copy];
  if (std::isnan(copy_us_per_MB)) return on_all_us * machine.sms / sms;
  price.constants.set(static_cast<std::size_t>(Constant::dispatch_copy));
  const double start_us = std::min(on_all_us, kernels[Constant::low_latency_hold] / 2);
  return std::max(on_all_us, start_us + op.traffic.copied_bytes / 1e6 * copy_us_per_MB / sms);
}

// The tables list whole transfers. The kernels hold SMs for a part of the time, half of it to issue and half to
// receive; between them the wire runs alone, for no less than its bytes take at the links' peaks.
void split_by_stage(const Operator& op, int sms, const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  const double whole = price.solo_us;
  const double hold = evaluate_noting(hold_curve(op), kernels, price).us;
  const double wire = std::max(std::isnan(hold) ? whole : whole - hold, std::min(whole, links_us(op, machine)));
  const Stage stage = op.traffic.stage;
  if (stage == Stage::wire) price.solo_us = wire;
  if (stage == Stage::issue || stage == Stage::receive) price.solo_us = (whole - wire) / 2;
  if (stage == Stage::issue) price.solo_us = issue_us(price.solo_us, op, sms, machine, kernels, price);
  if (stage == Stage::wire) {
    price.hold = Hold::nothing;
    price.sms = 0;
  }
}

// How a whole is split matters to what runs beside its wire.
void price_low_latency(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                       const KernelSet& kernels, Price& price) {
  split_by_stage(op, conditions.sms, machine, kernels, price);
  const bool split = op.traffic.stage != Stage::whole && conditions.overlapped;
  Basis basis{{"low_latency"}, machine.communicates_like(kernels.fitted_on) ? "" : kOtherMachine};
  if (split) basis.families.emplace_back("low_latency_hold");
  set_provenance(kernels, basis, dimensions_of(op, 0), price);
}

// By a serving stack's tables of transfers inside a node, never faster than the links.
void price_transfer_by_form(const Operator& op, const FamilyFit& fit, const PriceConditions& conditions,
                            const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  const Evaluation alone = evaluate(fit.form->curve(op, conditions.sms, machine), fit.constants);
  const Dimensions at = measured_dimensions_of(op, conditions.sms);
  price.gain = gain_of(fit, at, machine);
  const double us =
      with_own_latency(us_by_form(op, fit, price.gain, alone.us, conditions.sms, machine), op, machine, kernels);
  const double links = links_us(op, machine);
  price.solo_us = std::max(us, links);
  price.bound_by = us < links ? "NVLink" : alone.bound;
  const std::string doubt = machine.communicates_like(kernels.fitted_on) ? "" : kOtherMachine;
  set_provenance(kernels, {{op.measured_as}, doubt}, at, price);
}

// What stacks' tables do not have: transfers with compute kernels beside them. Copies are then stretched by as much as
// they are by the curve of DeepSeek's, where it knows.
void stretch_by_neighbours(const Operator& op, const PriceConditions& conditions, const KernelSet& kernels,
                           Price& price) {
  if (!conditions.disturbed() || is_low_latency(op.family)) return;  // whose wire holds no SM
  doubt_price("measured with nothing beside it", price);
  // The margin that the wire leaves copies is that of the machine whose time is stretched.
  const Curve curve = transfer_curve(op, conditions.sms, kernels.fitted_on);
  const double alone_us = evaluate(curve, kernels.constants).us;
  const double beside_us = copying_us(curve, kernels[copy_stretch(op.family)], kernels.constants);
  if (beside_us > alone_us) price.disturbed_speed = alone_us / beside_us;
}

// A stack whose own all-reduce is slower than NCCL's takes NCCL's.
void take_quicker_all_reduce(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                             const KernelSet& kernels, Price& price) {
  const FamilyFit* nccl = fit_with_form("nccl_all_reduce", kernels);
  if (op.measured_as != "custom_all_reduce" || nccl == nullptr) return;
  Operator other = op;
  other.measured_as = "nccl_all_reduce";
  Price by_nccl = price;
  by_nccl.note = {};
  by_nccl.kernel_set.clear();
  price_transfer_by_form(other, *nccl, conditions, machine, kernels, by_nccl);
  if (by_nccl.solo_us < price.solo_us) price = by_nccl;
}

// Between nodes, by NCCL's own model, but never faster than the links carry what it sends that way.
void price_by_nccl(const Operator& op, const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  const NcclChoice choice = nccl_choice(op, machine);
  Operator sent = op;
  sent.traffic.wire_bytes = sent.traffic.rdma_bytes = choice.nic_bytes;
  price.solo_us = std::max(choice.us, links_us(sent, machine)) + farthest_latency_us(op.traffic.ranks, machine);
  price.bound_by = choice.latency_us > choice.us / 2 ? "latency" : choice.link;
  doubt_price("between nodes by NCCL's cost model", price);
  set_links(sent, machine, kernels, price);
}

Precision precision_sent(const Operator& op) {
  const double bytes = op.traffic.record_bytes / op.traffic.hidden;  // of a number, scales included
  return bytes < number_bytes(Precision::bf16) ? Precision::fp8 : Precision::bf16;
}

// Not by a stack's own kernels.
bool goes_by_nccl(const Operator& op) {
  switch (op.family) {
    case Family::send:
    case Family::reduce_scatter:
    case Family::all_gather:
    case Family::all_reduce:
    case Family::all_to_all:
      return op.measured_as != "custom_all_reduce";
    default:
      return false;
  }
}

int held_sms(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine) {
  if (conditions.held > 0) return conditions.held;
  return conditions.channels && !conditions.ideal && goes_by_nccl(op) ? nccl_channels(op, machine) : 0;
}

// By its authors' rates, but never faster than the links.
void price_by_hybrid_ep(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                        const KernelSet& kernels, Price& price) {
  const Traffic& traffic = op.traffic;
  const bool in_domain = traffic.wire_bytes == 0;
  const HybridEp group{static_cast<double>(traffic.ranks), static_cast<double>(conditions.sms), in_domain,
                       nic_rate_GBps(machine)};
  const double rate = op.family == Family::nvlink_dispatch ? hybrid_ep_dispatch_GBps(precision_sent(op), group)
                                                           : hybrid_ep_combine_GBps(group);
  const double us = (in_domain ? traffic.copied_bytes : traffic.rdma_bytes) / rate / 1e3;
  const double links = links_us(op, machine);
  price.solo_us = std::max(us, links) + farthest_latency_us(traffic.ranks, machine);
  price.bound_by = !in_domain ? "NIC" : us < links ? "NVLink" : "SMs";
  doubt_price(in_domain ? "by HybridEP's published rates on GB200" : "by HybridEP's published rates on H100", price);
  set_links(op, machine, kernels, price);
}

// Of libraries that were measured over InfiniBand and EFA.
void doubt_network(const Operator& op, const MachineFacts& machine, Price& price) {
  if (machine.nic() == Nic::roce && op.traffic.wire_bytes > 0) {
    doubt_price("never measured over RoCE, which is taken for InfiniBand", price);
  }
}

// By what its kernels move, but never faster than the links. How much kernels that compute slow its copies nobody has
// published: they share memory and links with them, and no more is charged.
void price_by_deep_ep_v2(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                         const KernelSet& kernels, Price& price) {
  const DeepEpV2Times times = deep_ep_v2_times(op, conditions.sms, machine);
  const double links = links_us(op, machine);
  price.bound_by = links > times.total() ? "uplinks" : times.bound();
  price.solo_us = std::max(times.total(), links) + farthest_latency_us(op.traffic.ranks, machine);
  doubt_price(kDeepEpV2Times, price);
  if (conditions.disturbed()) doubt_price("measured with nothing beside it", price);
  doubt_network(op, machine, price);
  set_links(op, machine, kernels, price);
}

// Its kernels are taken to hold SMs for as long as DeepEP's low-latency ones.
void price_by_pplx(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                   const KernelSet& kernels, Price& price) {
  const double us = pplx_us(op, machine), links = links_us(op, machine);
  price.solo_us = std::max(us, links);
  price.bound_by = links > us ? "uplinks" : op.traffic.wire_bytes > 0 ? "NIC" : "NVLink";
  split_by_stage(op, conditions.sms, machine, kernels, price);
  doubt_price("by Perplexity's published times over CX7 and EFA", price);
  doubt_network(op, machine, price);
  if (op.traffic.unequal) doubt_price(kUnequal, price);
  set_links(op, machine, kernels, price);
}

// At the links' rates, of NICs at the share that DeepEP's second version reaches.
void price_without_sms(const Operator& op, const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  const double nic_us = bytes_at_peak_us(op.traffic.wire_bytes, nic_rate_GBps(machine)) / deep_ep_v2_nic_share(machine);
  price.solo_us = std::max(nic_us, links_us(op, machine)) + farthest_latency_us(op.traffic.ranks, machine);
  price.bound_by = nic_us > 0 ? "NIC" : "NVLink";
  price.sms = 0;
  price.hold = Hold::nothing;
  doubt_price("by NICs and copy engines without SMs, which nobody has timed", price);
  set_links(op, machine, kernels, price);
}

}  // namespace

std::vector<std::string> transfer_families(const Operator& op) {
  if (is_low_latency(op.family)) return {"low_latency"};
  return {"all_to_all_alone", "sm_copies"};
}

void price_transfer(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                    const KernelSet& kernels, Price& price) {
  if (is_deep_ep_v2(op)) {
    price_by_deep_ep_v2(op, conditions, machine, kernels, price);
    return;
  }
  if (is_pplx(op)) {
    price_by_pplx(op, conditions, machine, kernels, price);
    return;
  }
  if (const FamilyFit* fit = measured_fit(op, transfer_families(op), kernels)) {
    price_transfer_by_form(op, *fit, conditions, machine, kernels, price);
    if (is_low_latency(op.family)) split_by_stage(op, conditions.sms, machine, kernels, price);
    stretch_by_neighbours(op, conditions, kernels, price);
    if (op.traffic.unequal) doubt_price(kUnequal, price);
    set_links(op, machine, kernels, price);
    return;
  }
  const Curve curve = transfer_curve(op, conditions.sms, machine);
  const Evaluation alone = evaluate_noting(curve, kernels, price);
  const double links = links_us(op, machine);
  const bool known = !std::isnan(alone.us);
  price.solo_us = known ? std::max(with_own_latency(alone.us, op, machine, kernels), links) : links;
  price.bound_by = known ? alone.bound : "roofline";
  if (is_low_latency(op.family)) {
    price_low_latency(op, conditions, machine, kernels, price);
  } else {
    price_normal(op, conditions, curve, machine, kernels, price);
  }
  if (!known) set_roofline(price);
  if (known && op.traffic.unequal) doubt_price(kUnequal, price);
  set_links(op, machine, kernels, price);
}

void price_collective(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                      const KernelSet& kernels, Price& price) {
  if (op.without_sms) return price_without_sms(op, machine, kernels, price);
  price.sms = held_sms(op, conditions, machine);
  price.hold = price.sms > 0 ? Hold::resident : Hold::nothing;
  if (is_hybrid_ep(op)) {
    price_by_hybrid_ep(op, conditions, machine, kernels, price);
    return;
  }
  if (op.traffic.wire_bytes > 0 && !conditions.ideal) {
    price_by_nccl(op, machine, kernels, price);
    return;
  }
  if (const FamilyFit* fit = fit_with_form(op.measured_as, kernels)) {
    price_transfer_by_form(op, *fit, conditions, machine, kernels, price);
    take_quicker_all_reduce(op, conditions, machine, kernels, price);
  } else {
    price.solo_us = links_us(op, machine) + farthest_latency_us(op.traffic.ranks, machine);
    price.bound_by = "roofline";
    set_roofline(price);
  }
  set_links(op, machine, kernels, price);
}

void price_epilogue(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine, Price& price) {
  price.solo_us = deep_ep_v2_epilogue_us(op, conditions.sms, machine);
  price.bound_by = "HBM";
  doubt_price(kDeepEpV2Times, price);
}

void price_host_copy(const Operator& op, const MachineFacts& machine, Price& price) {
  MOELINE_CHECK(machine.host_GBps > 0, op.name);
  price.hold = Hold::nothing;
  price.sms = 0;
  price.solo_us = op.bytes / (machine.host_GBps * 1e3);
  price.bound_by = "host link";
  price.provenance = Provenance::datasheet;
  price.note.reasons = {"the nominal rate of the link to the host"};
  price.host_GBps = machine.host_GBps;
  price.hbm_GBps = std::min(machine.host_GBps, machine.hbm_GBps);
}

}  // namespace moeline::price_parts
