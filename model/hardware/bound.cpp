// What a kernel is bound by.
#include <algorithm>

#include "hardware/price.hpp"
#include "hardware/price_basis.hpp"
#include "moe/kernels.hpp"

namespace moeline {
namespace {

constexpr const char* kLatency = "latency";

double compute_us(const Operator& op, const MachineFacts& machine) {
  return flops_at_peak_us(op.flops, machine.tflops(row_of(op.family).precision));
}

double memory_us(const Operator& op, const MachineFacts& machine) {
  return bytes_at_peak_us(op.bytes, machine.hbm_GBps);
}

BoundBy longer_at_peaks(const Operator& op, const MachineFacts& machine) {
  return compute_us(op, machine) > memory_us(op, machine) ? BoundBy::compute : BoundBy::memory;
}

}  // namespace

std::string price_parts::bound_of(const Evaluation& curve, const Operator& op, double solo_us,
                                  const MachineFacts& machine) {
  constexpr double kHalf = 0.5;
  const double peak_us = std::max(compute_us(op, machine), memory_us(op, machine));
  if (curve.bound != kLatency || peak_us < kHalf * solo_us) return curve.bound;
  return longer_at_peaks(op, machine) == BoundBy::compute ? "compute" : "memory";
}

BoundBy bound_by(const Operator& op, const Price& price, const MachineFacts& machine, const KernelSet& kernels) {
  if (is_communication(op.family)) return BoundBy::communication;
  if (row_of(op.family).kind == FamilyKind::routing) return BoundBy::unknown;
  if (price.bound_by == kLatency || roofline_us(op, machine) < shortest_us(kernels, machine)) return BoundBy::launch;
  if (price.bound_by == "compute") return BoundBy::compute;
  if (price.bound_by == "memory") return BoundBy::memory;
  return longer_at_peaks(op, machine);
}

}  // namespace moeline
