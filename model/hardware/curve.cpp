#include "hardware/curve.hpp"

#include <cmath>

#include "base/error.hpp"

namespace moeline {
namespace {

Constant memory_constant(Family family) {
  switch (family) {
    case Family::rowwise:
      return Constant::rowwise;
    case Family::cast_transpose:
    case Family::swiglu:
      return Constant::tiled;
    case Family::requantize:
      return Constant::requantize;
    case Family::recode_12bit:
      return Constant::recode_12bit;
    case Family::strided:
      return Constant::strided;
    default:
      return Constant::streaming;
  }
}

double sum(const std::vector<Term>& terms, const Constants& constants) {
  double us = 0;
  for (const Term& term : terms) us += constants[static_cast<std::size_t>(term.constant)] * term.feature;
  return us;
}

}  // namespace

Evaluation evaluate(const Curve& curve, const Constants& constants) {
  Evaluation result;
  double slowest = curve.branches.empty() ? 0 : kUnknown;
  for (std::size_t i = 0; i < curve.branches.size(); ++i) {
    const double us = sum(curve.branches[i].terms, constants);
    if (std::isnan(us) || us <= slowest) continue;
    slowest = us;
    result.bound = curve.branches[i].bound;
    result.branch = i;
  }
  result.us = curve.fixed_us + sum(curve.always, constants) + slowest;
  return result;
}

Curve compute_curve(const Operator& op, int sms, const MachineFacts& machine, TileSet tiles) {
  const double fewer_sms = machine.sms / sms;
  switch (op.family) {
    case Family::gemm_fp8:
    case Family::gemm_fp8_wgrad:
    case Family::gemm_fp8_grouped:
    case Family::gemm_fp8_masked:
    case Family::gemm_bf16:
    case Family::gemm_bf16_grouped:
    case Family::gemm_bf16_batched:
      return gemm_curve(op, sms, machine, tiles);
    case Family::attention_forward:
    case Family::attention_backward:
    case Family::mla_decode:
    case Family::gqa_decode:
      return attention_curve(op, sms, machine);
    case Family::routing_scan:
      return {{{Constant::routing_scan, op.items / 1e6}}, {}};
    case Family::count_rows:
      return {{{Constant::count_rows, op.items / 1e3}}, {}};
    case Family::map_rows:
      return {{{Constant::map_rows, op.items / 1e3}}, {}};
    case Family::small:
      return {{{Constant::small, 1}}, {}};
    case Family::streaming:
    case Family::rowwise:
    case Family::cast_transpose:
    case Family::requantize:
    case Family::swiglu:
    case Family::recode_12bit:
    case Family::strided:
      return {{{Constant::memory_startup, 1},
               {memory_constant(op.family), bytes_at_peak_us(op.bytes, machine.hbm_GBps) * fewer_sms}},
              {}};
    case Family::notify:
    case Family::send:
    case Family::reduce_scatter:
    case Family::all_gather:
    case Family::dispatch:
    case Family::dispatch_cached:
    case Family::combine:
    case Family::low_latency_dispatch:
    case Family::low_latency_combine:
      break;
  }
  moeline::check_failed("a compute family", __FILE__, __LINE__, name_of(op.family));
}

}  // namespace moeline
