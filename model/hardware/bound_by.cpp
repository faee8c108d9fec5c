#include "hardware/bound_by.hpp"

#include "curves/curve.hpp"

namespace moeline {

BoundBy bound_by(const Operator& op, const Price& price, const MachineFacts& machine, const KernelSet& kernels) {
  if (is_communication(op.family)) return BoundBy::communication;
  if (row_of(op.family).kind == FamilyKind::routing) return BoundBy::unknown;
  if (price.bound_by == "latency" || roofline_us(op, machine) < shortest_us(kernels, machine)) return BoundBy::launch;
  if (price.bound_by == "compute") return BoundBy::compute;
  if (price.bound_by == "memory") return BoundBy::memory;
  const double flops_us = flops_at_peak_us(op.flops, machine.tflops(row_of(op.family).precision));
  return flops_us > bytes_at_peak_us(op.bytes, machine.hbm_GBps) ? BoundBy::compute : BoundBy::memory;
}

}  // namespace moeline
