#include "hardware/price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "curves/curve.hpp"
#include "curves/topology.hpp"
#include "hardware/expert_chance.hpp"
#include "moe/attention_core.hpp"
#include "moe/fused_experts.hpp"
#include "moe/kernels.hpp"

namespace moeline {
namespace {

constexpr const char* kOtherMachine = "other machine";
constexpr const char* kNoMeasurement = "no measurement";
constexpr const char* kUnequal = "ranks get unequal amounts";

double GBps(double bytes, double us) { return us > 0 ? bytes / us / 1e3 : 0; }

// What a price rests on: the families whose measurements made it, the one first whose set it counts for, and what
// speaks against them as such ("" if nothing does).
struct Basis {
  std::vector<std::string> families;
  std::string doubt;
};

// How a kernel that lies there is known.
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

// The form that a serving stack's tables gave the family; null where its curve goes by the set's constants.
const FamilyFit* fit_with_form(const std::string& family, const KernelSet& kernels) {
  const auto fit = kernels.fits.find(family);
  return fit != kernels.fits.end() && fit->second.form != nullptr ? &fit->second : nullptr;
}

// What serving stacks' tables measured the kernel as, where they count: not before what the chosen set itself has of
// these families, and of a set that is no stack's not before anything that is known of them.
const FamilyFit* measured_fit(const Operator& op, const std::vector<std::string>& families, const KernelSet& kernels) {
  // Of that name, on this machine or another.
  const auto is_chosen = [&](const std::string& set) {
    return set == kernels.name || set.ends_with(": " + kernels.name);
  };
  const FamilyFit* measured = fit_with_form(op.measured_as, kernels);
  if (measured == nullptr || is_chosen(measured->kernel_set)) return measured;
  const bool has_own = std::any_of(families.begin(), families.end(), [&](const std::string& family) {
    const auto fit = kernels.fits.find(family);
    return fit != kernels.fits.end() && (!kernels.of_a_stack || is_chosen(fit->second.kernel_set));
  });
  return has_own ? nullptr : measured;
}

// Of the curve of transfers without a form.
std::vector<std::string> transfer_families(const Operator& op) {
  if (is_low_latency(op.family)) return {"low_latency"};
  return {"all_to_all_alone", "sm_copies"};
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

// What the links carry meanwhile, of several NICs each. What stays in the node takes the NIC where the library sends it
// there.
void set_links(const Operator& op, const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  const Traffic& traffic = op.traffic;
  if (traffic.stage == Stage::issue || traffic.stage == Stage::receive) return;  // the wire carries the bytes
  const bool low_latency = is_low_latency(op.family);
  const bool over_nic = kernels[low_latency ? Constant::low_latency_own_node : Constant::normal_own_node] > 0;
  const double own_node = low_latency ? traffic.nvlink_bytes : traffic.rdma_bytes - traffic.wire_bytes;
  price.nic_GBps = GBps(traffic.wire_bytes + (over_nic ? own_node : 0), price.solo_us) / machine.nics_per_gpu;
  price.nvlink_GBps = GBps(low_latency && over_nic ? 0 : traffic.nvlink_bytes, price.solo_us);
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

// The tables list whole transfers. The kernels hold SMs for a part of the time, half of it to issue and half to
// receive; between them the wire runs alone, for no less than its bytes take at the links' peaks.
void split_by_stage(const Operator& op, const MachineFacts& machine, const KernelSet& kernels, Price& price) {
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
}

// How a whole is split matters to what runs beside its wire.
void price_low_latency(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                       const KernelSet& kernels, Price& price) {
  split_by_stage(op, machine, kernels, price);
  const bool split = op.traffic.stage != Stage::whole && conditions.overlapped;
  Basis basis{{"low_latency"}, machine.communicates_like(kernels.fitted_on) ? "" : kOtherMachine};
  if (split) basis.families.emplace_back("low_latency_hold");
  set_provenance(kernels, basis, dimensions_of(op, 0), price);
}

// us by a family's form with a gain. Tables were timed hot: what the gain adds belongs to the hot time, whatever else a
// cold kernel takes.
double us_by_form(const Operator& op, const FamilyFit& fit, double gain, double curve_us, int sms,
                  const MachineFacts& machine) {
  if (gain == 1) return curve_us;
  Operator hot = op;
  hot.hot = true;
  const double hot_us = evaluate(fit.form->curve(hot, sms, machine), fit.constants).us;
  return curve_us + (gain - 1) * std::min(hot_us, curve_us);
}

// Of the family's correction; another machine's kernels have other residuals.
double gain_of(const FamilyFit& fit, const Dimensions& at) {
  return fit.other_machine ? 1 : gain_at(fit.correction, fit.range, at);
}

// By a serving stack's tables of transfers inside a node, never faster than the links.
void price_transfer_by_form(const Operator& op, const FamilyFit& fit, const PriceConditions& conditions,
                            const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  const Evaluation alone = evaluate(fit.form->curve(op, conditions.sms, machine), fit.constants);
  const Dimensions at = measured_dimensions_of(op, conditions.sms);
  price.gain = gain_of(fit, at);
  const double us = us_by_form(op, fit, price.gain, alone.us, conditions.sms, machine);
  const double links = links_us(op, machine);
  price.solo_us = std::max(us, links);
  price.bound_by = us < links ? "NVLink" : alone.bound;
  const std::string doubt = machine.communicates_like(kernels.fitted_on) ? "" : kOtherMachine;
  set_provenance(kernels, {{op.measured_as}, doubt}, at, price);
}

void doubt_price(const char* reason, Price& price) {
  price.provenance = Provenance::extrapolated;
  price.note.reasons.insert(reason);
}

// What stacks' tables do not have: transfers with compute kernels beside them. Copies are then stretched by as much as
// they are by the curve of DeepSeek's, where it knows.
void stretch_by_neighbours(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                           const KernelSet& kernels, Price& price) {
  if (!conditions.disturbed() || is_low_latency(op.family)) return;  // whose wire holds no SM
  doubt_price("measured with nothing beside it", price);
  const Curve curve = transfer_curve(op, conditions.sms, machine);
  const double alone_us = evaluate(curve, kernels.constants).us;
  const double beside_us = copying_us(curve, kernels[copy_stretch(op.family)], kernels.constants);
  if (beside_us > alone_us) price.disturbed_speed = alone_us / beside_us;
}

void price_transfer(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                    const KernelSet& kernels, Price& price) {
  if (const FamilyFit* fit = measured_fit(op, transfer_families(op), kernels)) {
    price_transfer_by_form(op, *fit, conditions, machine, kernels, price);
    if (is_low_latency(op.family)) split_by_stage(op, machine, kernels, price);
    stretch_by_neighbours(op, conditions, machine, kernels, price);
    if (op.traffic.unequal) doubt_price(kUnequal, price);
    set_links(op, machine, kernels, price);
    return;
  }
  const Curve curve = transfer_curve(op, conditions.sms, machine);
  const Evaluation alone = evaluate_noting(curve, kernels, price);
  const double links = links_us(op, machine);
  const bool known = !std::isnan(alone.us);
  price.solo_us = known ? std::max(alone.us, links) : links;
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

// What no table has goes at the links' peaks, behind a message's latency. How many SMs a collective holds is not known,
// so none.
void price_collective(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                      const KernelSet& kernels, Price& price) {
  price.hold = Hold::nothing;
  price.sms = 0;
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

// What speaks against the measurements of the curve's family, wherever they lie.
std::string doubt_of(const Operator& op, const std::string& family, const MachineFacts& machine,
                     const KernelSet& kernels) {
  if (op.attention.cache != Precision::bf16 && family != op.measured_as) {
    return fmt::format("by {}'s kernels for a BF16 cache", family);
  }
  if (op.family == Family::sparse_attention && family.starts_with(name_of(Family::mla_decode))) {
    return fmt::format("chosen keys by {}'s kernels", family);
  }
  const bool as_casts = family == name_of(Family::rowwise) && fit_with_form(family, kernels) != nullptr;
  if (family != name_of(op.family) && family != op.measured_as && !as_casts) return fmt::format("priced as {}", family);
  return machine.computes_like(kernels.fitted_on) ? "" : kOtherMachine;
}

// The machine at the clock that the kernel has: what was measured under load has that of the load already.
MachineFacts machine_for(const std::string& family, const PriceConditions& conditions, const MachineFacts& machine,
                         const KernelSet& kernels) {
  return kernels.is_burst(family) ? at_clock(machine, conditions.clock) : machine;
}

Curve curve_of(const Operator& op, const std::string& family, int sms, const MachineFacts& machine,
               const KernelSet& kernels) {
  if (const FamilyFit* measured = fit_with_form(family, kernels)) return measured->form->curve(op, sms, machine);
  const auto fit = kernels.fits.find(family);
  const TileSet tiles = fit == kernels.fits.end() ? kernels.tiles : fit->second.tiles;
  Curve curve = compute_curve(op, sms, machine, tiles);
  const bool lends = family == name_of(Family::gemm_fp8) && row_of(op.family).precision == Precision::bf16;
  return lends ? with_fp8_constants(std::move(curve)) : curve;
}

double us_by_curve(const Operator& op, const std::string& family, double gain, int sms, const MachineFacts& machine,
                   const KernelSet& kernels) {
  const Curve curve = curve_of(op, family, sms, machine, kernels);
  const FamilyFit* measured = fit_with_form(family, kernels);
  if (measured != nullptr) {
    return us_by_form(op, *measured, gain, evaluate(curve, measured->constants).us, sms, machine);
  }
  return std::max(evaluate(curve, kernels.constants).us, shortest_us(kernels, machine));
}

// No kernel beats the peaks of HBM and of the tensor cores it runs on.
double floor_us(const Operator& op, const MachineFacts& machine) {
  return std::max(op.hot ? 0 : bytes_at_peak_us(op.bytes, machine.hbm_GBps),
                  flops_at_peak_us(op.flops, machine.tflops(precision_of(op))));
}

// Share of the time that goes by the SMs' clock: by how much it grows with slightly slower SMs, over by how much they
// are slower. `clocked`: the machine at the clock that the kernel has.
double clocked_share(const Operator& op, const std::string& family, int sms, const Price& price,
                     const MachineFacts& clocked, const KernelSet& kernels) {
  constexpr double kSlower = 0.99;
  if (!(price.solo_us > 0)) return 0;  // nothing to do, and nothing known of launching it
  const MachineFacts slower = at_clock(clocked, kSlower);
  const bool by_curve = price.provenance != Provenance::roofline;
  const double us = by_curve ? us_by_curve(op, family, price.gain, sms, slower, kernels) : shortest_us(kernels, slower);
  const double slower_us = std::max(us, floor_us(op, slower));
  return std::clamp((slower_us / price.solo_us - 1) / (1 / kSlower - 1), 0.0, 1.0);
}

// A curve a little below the peaks is a matter of rounding; one far below knows nothing of such a kernel.
constexpr double kRounding = 1.05;
void raise_to_floor(double floor_us, double rounding, Price& price) {
  if (floor_us <= price.solo_us) return;
  if (is_covered(price.provenance) && floor_us > rounding * price.solo_us) {
    price.provenance = Provenance::extrapolated;
    price.note.reasons.insert("the curve is below the machine's peaks");
  }
  price.solo_us = floor_us;
  price.bound_by = "roofline";
}

// What goes as casts do is told by its bytes, and starts up like them where it has fewer than any.
Dimensions form_dimensions(const Operator& op, const std::string& family, int sms) {
  constexpr double kFewest = 4096, kScoreBytes = 4;  // of what a routing kernel goes through
  if (family != name_of(Family::rowwise)) return measured_dimensions_of(op, sms);
  const double bytes = op.bytes > 0 ? op.bytes : op.items * kScoreBytes;
  return {{Dimension::bytes, std::max(bytes, kFewest)}, {Dimension::sms, sms}};
}

// By the form and the constants of a serving stack's tables, whose rows held what L2 kept of the operands: cold, some
// come out below the peaks, and a launch is in every row.
void price_by_form(const Operator& op, const std::string& family, const FamilyFit& fit,
                   const PriceConditions& conditions, const MachineFacts& machine, const KernelSet& kernels,
                   Price& price) {
  constexpr double kHot = 1.25;
  const MachineFacts clocked = machine_for(family, conditions, machine, kernels);
  const Evaluation alone = evaluate(fit.form->curve(op, conditions.sms, clocked), fit.constants);
  const Dimensions at = form_dimensions(op, family, conditions.sms);
  price.gain = gain_of(fit, at);
  price.solo_us = us_by_form(op, fit, price.gain, alone.us, conditions.sms, clocked);
  price.bound_by = alone.bound;
  price.deviation = deviation_by_chance(op, fit, conditions.sms, clocked);
  set_provenance(kernels, {{family}, doubt_of(op, family, machine, kernels)}, at, price);
  // What stands between the GEMMs of fused experts may never leave L2.
  const bool within_layer = op.experts.role != ExpertRole::none && !is_gemm(op.family);
  if (!within_layer) raise_to_floor(floor_us(op, clocked), kHot, price);
  price.clocked = clocked_share(op, family, conditions.sms, price, clocked, kernels);
}

void price_compute(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                   const KernelSet& kernels, Price& price);

// Of a pass that the machine's own tables lack.
void price_by_forward_pass(const Operator& op, const Operator& forward, const PriceConditions& conditions,
                           const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  price_compute(forward, conditions, machine, kernels, price);
  price.solo_us *= op.flops / forward.flops * kBackwardPerFlop;
  doubt_price("by its forward pass", price);
}

void price_compute(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                   const KernelSet& kernels, Price& price) {
  if (op.family == Family::attention_backward) {
    const Operator forward = prefill_core(op.attention, op.attention.window);
    if (measured_fit(forward, {name_of(op.family)}, kernels) != nullptr) {
      price_by_forward_pass(op, forward, conditions, machine, kernels, price);
      return;
    }
  }
  const std::string family = priced_as(op, kernels);
  if (const FamilyFit* measured = fit_with_form(family, kernels)) {
    price_by_form(op, family, *measured, conditions, machine, kernels, price);
    return;
  }
  const MachineFacts clocked = machine_for(family, conditions, machine, kernels);
  const Evaluation alone = evaluate_noting(curve_of(op, family, conditions.sms, clocked, kernels), kernels, price);
  if (!kernels.fits.contains(family) || std::isnan(alone.us)) {
    set_roofline(price);  // nothing is known but the floors
  } else {
    price.solo_us = alone.us;
    price.bound_by = alone.bound;
    price.deviation = alone.deviation;
    set_provenance(kernels, {{family}, doubt_of(op, family, machine, kernels)}, dimensions_of(op, conditions.sms),
                   price);
  }
  price.solo_us = std::max(price.solo_us, shortest_us(kernels, clocked));
  raise_to_floor(floor_us(op, clocked), kRounding, price);
  price.clocked = clocked_share(op, family, conditions.sms, price, clocked, kernels);
}

}  // namespace

std::string priced_as(const Operator& op, const KernelSet& kernels) {
  const std::vector<std::string> families =
      is_all_to_all(op.family) ? transfer_families(op) : std::vector{priced_as(op.family, kernels)};
  if (measured_fit(op, families, kernels) != nullptr) return op.measured_as;
  // Without a table of weights that are unpacked on the way, a GEMM of the same products that reads fewer bytes.
  const std::string bf16 = moeline::kernels::linear_family(Precision::bf16);
  const bool unpacks = op.precision == Precision::int4 && op.family == Family::gemm_bf16;
  if (unpacks && kernels.of_a_stack && fit_with_form(bf16, kernels) != nullptr) return bf16;
  // Grouped GEMMs of a layout that was not measured go as those of a fused layer.
  if (op.experts.role != ExpertRole::none && is_gemm(op.family) && !kernels.fits.contains(name_of(op.family))) {
    ExpertShape fused = op.experts;
    fused.layout = ExpertLayout::fused;
    if (fit_with_form(measured_expert_layer(fused), kernels) != nullptr) return measured_expert_layer(fused);
  }
  return priced_as(op.family, kernels);
}

namespace {

// Whether the machine's own tables have casts and not this family: what passes once over memory then goes as they do.
bool goes_as_casts(Family family, const KernelSet& kernels) {
  const FamilyKind kind = row_of(family).kind;
  const bool passes_once = kind == FamilyKind::memory_bound || kind == FamilyKind::routing || kind == FamilyKind::small;
  const FamilyFit* casts = fit_with_form(name_of(Family::rowwise), kernels);
  if (!passes_once || casts == nullptr || casts->other_machine) return false;
  const auto own = kernels.fits.find(name_of(family));
  if (own == kernels.fits.end()) return true;
  return own->second.other_machine && !own->second.kernel_set.ends_with(": " + kernels.name);
}

}  // namespace

std::string priced_as(Family family, const KernelSet& kernels) {
  if (goes_as_casts(family, kernels)) return name_of(Family::rowwise);
  const Precision precision = row_of(family).precision;
  if (kernels.fits.contains(name_of(family)) || !is_gemm(family) || precision == Precision::fp8) return name_of(family);
  if (precision != Precision::bf16) return name_of(Family::gemm_fp8);
  return name_of(kernels.knows("gemm_bf16") ? Family::gemm_bf16 : Family::gemm_fp8);
}

double shortest_us(const KernelSet& kernels, const MachineFacts& machine) {
  const double small = overhead(machine, kernels[Constant::small]);
  return std::isnan(small) ? 0 : small;
}

double roofline_us(const Operator& op, const MachineFacts& machine) {
  return std::max(floor_us(op, machine), links_us(op, machine));
}

Price price(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
            const KernelSet& kernels) {
  if (machine.tflops(precision_of(op)) == 0) {
    throw SpecError(
        fmt::format("'{}' is an FP8 kernel, and the machine has no FP8 tensor cores (fp8_tflops is 0)", op.name));
  }
  if (precision_of(op) == Precision::nvfp4 && machine.fp4_tflops == 0) {
    throw SpecError(
        fmt::format("'{}' is an FP4 kernel, and the machine has no FP4 tensor cores (fp4_tflops is 0)", op.name));
  }
  MOELINE_CHECK(conditions.sms > 0 && conditions.sms <= machine.sms, std::to_string(conditions.sms));
  Price price;
  // A fused layer's GEMMs have many short blocks, and other kernels get between them.
  const bool fused = op.experts.role != ExpertRole::none && op.experts.layout == ExpertLayout::fused;
  price.hold = row_of(op.family).is_resident && !fused ? Hold::resident : Hold::elastic;
  price.sms = op.blocks > 0 ? std::min(op.blocks, conditions.sms) : conditions.sms;
  if (op.family == Family::notify) {
    // A message there and back; waiting for late ranks is not a cost.
    price.solo_us = 2 * farthest_latency_us(op.traffic.ranks, machine);
    price.provenance = Provenance::datasheet;
    price.note.reasons = {"the NIC's latency there and back"};
    return price;
  }
  if (is_collective(op.family)) {
    price_collective(op, conditions, machine, kernels, price);
  } else if (is_all_to_all(op.family)) {
    price_transfer(op, conditions, machine, kernels, price);
  } else {
    price_compute(op, conditions, machine, kernels, price);
  }
  if (is_communication(op.family)) raise_to_floor(floor_us(op, machine), kRounding, price);
  price.hbm_GBps = std::min(GBps(op.bytes, price.solo_us), machine.hbm_GBps);
  price.nvlink_GBps = std::min(price.nvlink_GBps, machine.nvlink_GBps);
  price.nic_GBps = std::min(price.nic_GBps, machine.nic_GBps);
  return price;
}

Price price_all(const std::vector<Operator>& ops, const PriceConditions& conditions, const MachineFacts& machine,
                const KernelSet& kernels) {
  Price all = price(ops.front(), conditions, machine, kernels);
  double longest_us = all.solo_us;
  for (std::size_t i = 1; i < ops.size(); ++i) {
    const Price next = price(ops[i], conditions, machine, kernels);
    const double us = all.solo_us + next.solo_us;
    const auto mean = [&](double before, double now) {
      return us > 0 ? (before * all.solo_us + now * next.solo_us) / us : 0;
    };
    all.clocked = mean(all.clocked, next.clocked);
    all.gain = mean(all.gain, next.gain);
    all.hbm_GBps = mean(all.hbm_GBps, next.hbm_GBps);
    all.nvlink_GBps = mean(all.nvlink_GBps, next.nvlink_GBps);
    all.nic_GBps = mean(all.nic_GBps, next.nic_GBps);
    all.deviation = std::hypot(all.deviation * all.solo_us, next.deviation * next.solo_us) / std::max(us, 1e-9);
    all.solo_us = us;
    all.sms = std::max(all.sms, next.sms);
    all.provenance = std::max(all.provenance, next.provenance);
    all.note.add(next.note);
    all.constants |= next.constants;
    if (next.solo_us <= longest_us) continue;
    longest_us = next.solo_us;
    all.bound_by = next.bound_by;
    all.kernel_set = next.kernel_set;
  }
  return all;
}

}  // namespace moeline
