#include "hardware/curve.hpp"

#include <cmath>

#include "base/error.hpp"

namespace moeline {
namespace {

constexpr double kTile = 128;  // of a GEMM's output and of its k-blocks

// 1e6 FLOP/us = 1 TFLOP/s; 1e3 B/us = 1 GB/s.
double flops_at_peak_us(double flops, double tflops) { return flops / (tflops * 1e6); }
double bytes_at_peak_us(double bytes, double GBps) { return bytes / (GBps * 1e3); }

std::vector<Term> persistent_gemm(Constant mainloop, Constant epilogue, const Operator& op, int sms,
                                  const MachineFacts& machine) {
  const double tiles = std::ceil(op.m / kTile) * std::ceil(op.n / kTile);
  const double waves = std::ceil(tiles / sms);
  const double block_us = flops_at_peak_us(2 * kTile * kTile * kTile, machine.fp8_tflops / machine.sms);
  return {{mainloop, waves * op.k / kTile * block_us}, {epilogue, waves}};
}

Constant memory_constant(Family family) {
  switch (family) {
    case Family::rowwise:
      return Constant::rowwise;
    case Family::cast_transpose:
      return Constant::cast_transpose;
    case Family::requantize:
      return Constant::requantize;
    case Family::swiglu:
      return Constant::swiglu;
    case Family::recode_12bit:
      return Constant::recode_12bit;
    case Family::strided:
      return Constant::strided;
    default:
      return Constant::streaming;
  }
}

}  // namespace

std::vector<Term> compute_terms(const Operator& op, int sms, const MachineFacts& machine) {
  const double fewer_sms = machine.sms / sms;
  switch (op.family) {
    case Family::gemm_fp8:
      return persistent_gemm(Constant::gemm_mainloop, Constant::gemm_epilogue, op, sms, machine);
    case Family::gemm_fp8_wgrad:
      return persistent_gemm(Constant::wgrad_mainloop, Constant::wgrad_epilogue, op, sms, machine);
    case Family::gemm_fp8_grouped:
      return persistent_gemm(Constant::grouped_mainloop, Constant::grouped_epilogue, op, sms, machine);
    case Family::gemm_bf16:
      return {{Constant::gemm_bf16, flops_at_peak_us(op.flops, machine.bf16_tflops) * fewer_sms}};
    case Family::attention_forward:
      return {{Constant::attention_forward, flops_at_peak_us(op.flops, machine.bf16_tflops) * fewer_sms}};
    case Family::attention_backward:
      return {{Constant::attention_backward, flops_at_peak_us(op.flops, machine.bf16_tflops) * fewer_sms}};
    case Family::routing_scan:
      return {{Constant::routing_scan, op.items / 1e6}};
    case Family::count_rows:
      return {{Constant::count_rows, op.items / 1e3}};
    case Family::map_rows:
      return {{Constant::map_rows, op.items / 1e3}};
    case Family::small:
      return {{Constant::small, 1}};
    case Family::streaming:
    case Family::rowwise:
    case Family::cast_transpose:
    case Family::requantize:
    case Family::swiglu:
    case Family::recode_12bit:
    case Family::strided:
      return {{Constant::memory_startup, 1},
              {memory_constant(op.family), bytes_at_peak_us(op.bytes, machine.hbm_GBps) * fewer_sms}};
    case Family::notify:
    case Family::dispatch:
    case Family::dispatch_cached:
    case Family::combine:
      break;
  }
  moeline::check_failed("a compute family", __FILE__, __LINE__, name_of(op.family));
}

Term wire_term(const Operator& op, const MachineFacts& machine, bool overlapped) {
  const double us = bytes_at_peak_us(op.traffic.rdma_bytes, machine.nic_GBps);
  if (!overlapped) return {Constant::all_to_all_alone, us};
  if (op.family == Family::dispatch) return {Constant::dispatch_overlapped, us};
  if (op.family == Family::dispatch_cached) return {Constant::dispatch_cached_overlapped, us};
  return {Constant::combine_overlapped, us};
}

Term copy_term(const Operator& op, int sms) {
  const bool back = op.family == Family::combine;
  return {back ? Constant::combine_copy : Constant::dispatch_copy, op.traffic.copied_bytes / 1e6 / sms};
}

double size_of(const Operator& op) {
  if (is_gemm(op.family) || op.flops > 0) return op.flops;
  if (is_all_to_all(op.family)) return op.traffic.copied_bytes;
  return op.items > 0 ? op.items : op.bytes;
}

}  // namespace moeline
