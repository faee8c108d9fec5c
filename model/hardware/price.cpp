#include "hardware/price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "curves/curve.hpp"
#include "curves/topology.hpp"
#include "hardware/price_basis.hpp"
#include "hardware/price_transfer.hpp"
#include "moe/all_to_all.hpp"
#include "moe/attention_kernels.hpp"
#include "moe/fused_experts.hpp"
#include "moe/kernels.hpp"

namespace moeline {

using namespace price_parts;

namespace {

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

// Share of the time that goes by the SMs' clock: by how much it grows with slightly slower SMs, over by how much they
// are slower. `clocked`: the machine at the clock that the kernel has.
double clocked_share(const Operator& op, const std::string& family, int sms, const Price& price,
                     const MachineFacts& clocked, const KernelSet& kernels) {
  constexpr double kSlower = 0.99, kAlike = 1 - 1e-12;  // both below the clock that tables' long kernels are timed at
  if (!(price.solo_us > 0)) return 0;                   // nothing to do, and nothing known of launching it
  const bool by_curve = price.provenance != Provenance::roofline;
  const auto us_at = [&](double share) {
    const MachineFacts slower = at_clock(clocked, share);
    const double us =
        by_curve ? us_by_curve(op, family, price.gain, sms, slower, kernels) : shortest_us(kernels, slower);
    return std::max(us, floor_us(op, slower));
  };
  return std::clamp((us_at(kSlower) / us_at(kAlike) - 1) / (1 / kSlower - 1), 0.0, 1.0);
}

// What goes as casts do is told by its bytes, and starts up like them where it has fewer than any.
Dimensions form_dimensions(const Operator& op, const std::string& family, int sms) {
  constexpr double kFewest = 4096;
  if (family != name_of(Family::rowwise)) return measured_dimensions_of(op, sms);
  return {{Dimension::bytes, std::max(op.passed_bytes(), kFewest)}, {Dimension::sms, sms}};
}

// At the most of their peak that a product reaches at the clock that the machine is at (cuBLAS on B300: 1490 TFLOP/s at
// 1278 MHz, 2657 at 1125, by a log of suimenno3002/cutex).
double tensor_cores_us(const Operator& op, const MachineFacts& clocked) {
  constexpr double kMostOfPeak = 0.97;
  const double nominal_mhz = clocked.sm_clock_mhz / clocked.clock_share;
  const double over_nominal = clocked.boost_clock_mhz > 0 ? clocked.boost_clock_mhz / nominal_mhz : 1;
  return flops_at_peak_us(op.flops, kMostOfPeak * over_nominal * clocked.tflops(precision_of(op)));
}

// Behind a cast of the cache, which is a kernel of its own, the core multiplies what came out of it.
double floor_of_form(const Operator& op, const FamilyFit& fit, int sms, const MachineFacts& clocked) {
  if (fit.form->first.empty()) return floor_us(op, clocked);
  double first_us = 0;
  for (const Term& term : fit.form->curve(op, sms, clocked).always) {
    const bool is_first = std::count(fit.form->first.begin(), fit.form->first.end(), term.constant) > 0;
    if (is_first) first_us += fit.constants[static_cast<std::size_t>(term.constant)] * term.feature;
  }
  Operator behind = op;
  if (first_us > 0) behind.attention.cache = Precision::bf16;
  return first_us + floor_us(behind, clocked);
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
  price.gain = gain_of(fit, at, machine);
  price.solo_us = us_by_form(op, fit, price.gain, alone.us, conditions.sms, clocked);
  if (clocked.clock_share < 1) {
    // Tables' loops ran at the clock that power left the kernel itself, which may be lower than this one: products at
    // nearly the tensor cores' peak at their clock, other long kernels as their curve says.
    const double timed_us = evaluate(fit.form->curve(op, conditions.sms, machine), fit.constants).us;
    const double timed = us_by_form(op, fit, price.gain, timed_us, conditions.sms, machine);
    price.solo_us = std::max(timed, is_gemm(op.family) ? tensor_cores_us(op, clocked) : price.solo_us);
  }
  price.bound_by = bound_of(alone, op, price.solo_us, machine);
  price.deviation = deviation_by_chance(op, fit, conditions.sms, clocked);
  set_provenance(kernels, {{family}, doubt_of(op, family, machine, kernels)}, at, price);
  // What stands between the GEMMs of fused experts may never leave L2.
  const bool within_layer = op.experts.role != ExpertRole::none && !is_gemm(op.family);
  if (!within_layer) raise_to_floor(floor_of_form(op, fit, conditions.sms, clocked), kHot, price);
  price.clocked = clocked_share(op, family, conditions.sms, price, clocked, kernels);
}

void price_compute(const Operator& op, const std::string& family, const PriceConditions& conditions,
                   const MachineFacts& machine, const KernelSet& kernels, Price& price);

// Of a pass that the machine's own tables lack.
void price_by_forward_pass(const Operator& op, const Operator& forward, const PriceConditions& conditions,
                           const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  price_compute(forward, priced_as(forward, kernels), conditions, machine, kernels, price);
  price.solo_us *= op.flops / forward.flops * kBackwardPerFlop;
  doubt_price("by its forward pass", price);
}

// `family`: that it is priced as.
void price_compute(const Operator& op, const std::string& family, const PriceConditions& conditions,
                   const MachineFacts& machine, const KernelSet& kernels, Price& price) {
  if (op.family == Family::attention_backward && !is_by_cudnn(op)) {
    const Operator forward = prefill_core(op.attention, op.attention.window);
    if (measured_fit(forward, {name_of(op.family)}, kernels) != nullptr) {
      price_by_forward_pass(op, forward, conditions, machine, kernels, price);
      return;
    }
  }
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
    price.bound_by = bound_of(alone, op, alone.us, machine);
    price.deviation = alone.deviation;
    set_provenance(kernels, {{family}, doubt_of(op, family, machine, kernels)}, dimensions_of(op, conditions.sms),
                   price);
  }
  price.solo_us = std::max(price.solo_us, shortest_us(kernels, clocked));
  raise_to_floor(floor_us(op, clocked), kRounding, price);
  price.clocked = clocked_share(op, family, conditions.sms, price, clocked, kernels);
}

// The machine with so many SMs, each as quick as it was; memory and links stay.
MachineFacts with_sms(MachineFacts machine, double sms) {
  for (double* peak : {&machine.fp4_tflops, &machine.fp8_tflops, &machine.bf16_tflops}) *peak *= sms / machine.sms;
  machine.sms = sms;
  return machine;
}

// More SMs than a kernel was measured on never slow it: they may be left idle. Its library's choice of tiles is an
// estimate here, which for the larger machine can take one that the fitted constants find slower.
void price_on_most_sms(const Operator& op, PriceConditions conditions, const MachineFacts& machine,
                       const KernelSet& kernels, Price& price) {
  Price on_measured = price;
  price_compute(op, price.family, conditions, machine, kernels, price);
  const double measured_sms = kernels.fitted_on.sms;
  if (measured_sms <= 0 || machine.sms <= measured_sms) return;  // 0: it was not said
  conditions.sms = std::max(1, static_cast<int>(conditions.sms * measured_sms / machine.sms));
  price_compute(op, on_measured.family, conditions, with_sms(machine, measured_sms), kernels, on_measured);
  if (on_measured.solo_us < price.solo_us) price = std::move(on_measured);
}

// No kernel beats the links that it takes, whatever its time was measured on.
void raise_to_links(const MachineFacts& machine, Price& price) {
  constexpr double kEqual = 1 + 1e-9;
  const double nvlink_GBps = nvlink_rate_GBps(machine), nic_GBps = machine.nic_GBps * machine.slowest_nic;
  const double nvlink = price.nvlink_GBps / nvlink_GBps, nic = price.nic_GBps / nic_GBps;
  if (std::max(nvlink, nic) > kEqual) {
    raise_to_floor(std::max(nvlink, nic) * price.solo_us, kRounding, price);
    price.bound_by = nic > nvlink ? "NIC" : "NVLink";
  }
  const double times = std::max({1.0, nvlink, nic});
  price.nvlink_GBps = std::min(price.nvlink_GBps / times, nvlink_GBps);  // rounding adds nothing
  price.nic_GBps = std::min(price.nic_GBps / times, nic_GBps);
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
  if (op.experts.role == ExpertRole::layer) return op.measured_as;  // which nothing else is like
  if (op.experts.role != ExpertRole::none && is_gemm(op.family) && !kernels.fits.contains(name_of(op.family))) {
    ExpertShape fused = op.experts;
    fused.layout = ExpertLayout::fused;
    if (fit_with_form(measured_expert_layer(fused), kernels) != nullptr) return measured_expert_layer(fused);
  }
  return priced_as(op.family, kernels);
}

namespace {

// Whether tables of the machine, or of one that it carries over, have casts, and none that is as near has this family:
// what passes once over memory then goes as casts do.
bool goes_as_casts(Family family, const KernelSet& kernels) {
  const FamilyKind kind = row_of(family).kind;
  const bool passes_once = kind == FamilyKind::memory_bound || kind == FamilyKind::routing || kind == FamilyKind::small;
  const FamilyFit* casts = fit_with_form(name_of(Family::rowwise), kernels);
  if (!passes_once || casts == nullptr) return false;
  const auto own = kernels.fits.find(name_of(family));
  if (own == kernels.fits.end()) return true;
  return own->second.other_machine && !own->second.kernel_set.ends_with(": " + kernels.fitted_name());
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

// Of a number format that the machine's tensor cores do not multiply: its peak is 0.
SpecError no_tensor_cores(const Operator& op, const char* format, const char* fact) {
  return SpecError(fmt::format("'{}' is an {} kernel, and the machine has no {} tensor cores ({} is 0)", op.name,
                               format, format, fact))
      .of("hardware");
}

namespace {

Price price_by_set(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                   const KernelSet& kernels);

// Its part of what they take together: they start up at the same time, and fill each other's last waves.
Price price_beside_its_like(Operator op, const PriceConditions& conditions, const MachineFacts& machine,
                            const KernelSet& kernels) {
  const double streams = std::exchange(op.streams, 1);
  for (double* all : {&op.m, &op.flops, &op.bytes}) *all *= streams;
  Price part = price_by_set(op, conditions, machine, kernels);
  part.solo_us /= streams;
  return part;
}

// Where no set of the machine has cuDNN's, FlashAttention's.
Price price_as_flash_attention(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                               const KernelSet& kernels) {
  const bool forward = op.family == Family::attention_forward;
  Operator flash = forward ? prefill_core(op.attention, op.attention.window)
                           : prefill_backward_core(op.attention, op.attention.window);
  flash.hot = op.hot;
  return price_by_set(flash, conditions, machine, kernels);
}

Price price_by_set(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                   const KernelSet& kernels) {
  if (is_by_cudnn(op) && fit_with_form(op.measured_as, kernels) == nullptr) {
    return price_as_flash_attention(op, conditions, machine, kernels);
  }
  if (op.streams > 1) return price_beside_its_like(op, conditions, machine, kernels);
  if (machine.tflops(precision_of(op)) == 0) throw no_tensor_cores(op, "FP8", "fp8_tflops");
  if (precision_of(op) == Precision::nvfp4 && machine.fp4_tflops == 0) throw no_tensor_cores(op, "FP4", "fp4_tflops");
  MOELINE_CHECK(conditions.sms > 0 && conditions.sms <= machine.sms, std::to_string(conditions.sms));
  Price price;
  price.family = priced_as(op, kernels);
  // A fused layer's GEMMs have many short blocks, and other kernels get between them.
  const bool fused = op.experts.role != ExpertRole::none && op.experts.layout == ExpertLayout::fused;
  const bool gives_way = fused || (conditions.channels && is_gemm(op.family));
  price.hold = row_of(op.family).is_resident && !gives_way ? Hold::resident : Hold::elastic;
  price.sms = op.blocks > 0 ? std::min(op.blocks, conditions.sms) : conditions.sms;
  if (op.family == Family::notify) {
    // A message there and back; waiting for late ranks is not a cost.
    price.solo_us = 2 * farthest_latency_us(op.traffic.ranks, machine);
    price.provenance = Provenance::datasheet;
    price.note.reasons = {"a message's latency there and back"};
    return price;
  }
  if (is_host_copy(op.family)) {
    price_host_copy(op, machine, price);
    return price;
  }
  if (is_collective(op.family)) {
    price_collective(op, conditions, machine, kernels, price);
  } else if (is_all_to_all(op.family)) {
    price_transfer(op, conditions, machine, kernels, price);
  } else if (is_deep_ep_v2_epilogue(op)) {
    price_epilogue(op, conditions, machine, price);
  } else {
    price_on_most_sms(op, conditions, machine, kernels, price);
    price.nvlink_GBps = GBps(op.traffic.nvlink_bytes, price.solo_us);  // of a kernel that sends as well
  }
  if (is_communication(op.family)) raise_to_floor(floor_us(op, machine), kRounding, price);
  raise_to_links(machine, price);
  price.hbm_GBps = std::min(GBps(op.bytes, price.solo_us), machine.hbm_GBps);  // the rest stays in L2
  return price;
}

}  // namespace

Price price(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
            const KernelSet& kernels) {
  if (kernels.learnt.empty()) return price_by_set(op, conditions, machine, kernels);
  PriceConditions traced = conditions;
  traced.clock = kernels.learnt.clock;
  Price price = price_by_set(op, traced, machine, kernels);
  apply_learnt(kernels.learnt, kernels.name, op, price);
  return price;
}

PriceConditions conditions_among(const std::vector<Operator>& ops, const Operator& op,
                                 const PriceConditions& conditions, const MachineFacts& machine) {
  PriceConditions own = conditions;
  const bool of_transfers =
      std::any_of(ops.begin(), ops.end(), [](const auto& o) { return is_communication(o.family); });
  if (of_transfers && !is_communication(op.family)) own.sms = static_cast<int>(machine.sms);
  return own;
}

Price price_all(const std::vector<Operator>& ops, const PriceConditions& conditions, const MachineFacts& machine,
                const KernelSet& kernels) {
  Price all = price(ops.front(), conditions, machine, kernels);
  double longest_us = all.solo_us;
  for (std::size_t i = 1; i < ops.size(); ++i) {
    const Price next = price(ops[i], conditions_among(ops, ops[i], conditions, machine), machine, kernels);
    const double us = all.solo_us + next.solo_us;
    const auto mean = [&](double before, double now) {
      return us > 0 ? (before * all.solo_us + now * next.solo_us) / us : 0;
    };
    all.clocked = mean(all.clocked, next.clocked);
    all.gain = mean(all.gain, next.gain);
    all.hbm_GBps = mean(all.hbm_GBps, next.hbm_GBps);
    all.nvlink_GBps = mean(all.nvlink_GBps, next.nvlink_GBps);
    all.nic_GBps = mean(all.nic_GBps, next.nic_GBps);
    all.host_GBps = mean(all.host_GBps, next.host_GBps);
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
