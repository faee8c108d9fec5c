// Kernels of which few shapes were measured, those of a few traces: a start-up, and the slower of what their operands
// take at HBM's peak and their products at the tensor cores'. Where products of several shapes are known, each of the
// two has a constant; where one shape is, the start-up alone has, and the rest is as fast as libraries get.
#include <algorithm>

#include "curves/form.hpp"

namespace moeline {
namespace peaks_curves {
namespace {

enum Part : std::size_t { start, compute, memory };

// Of CDNA 3, libraries reach at most 708 of 1307 TFLOP/s in BF16 (max_achievable_tflops, MI300X.json of
// AMD-AGI/TraceLens 171dd747).
constexpr double kLeastCompute = 1307.4 / 708;

double compute_us(const Operator& op, int sms, const MachineFacts& machine) {
  return flops_at_peak_us(op.flops, machine.tflops(precision_of(op))) * machine.sms / sms;
}

double memory_us(const Operator& op, int sms, const MachineFacts& machine) {
  return bytes_at_peak_us(op.bytes, machine.hbm_GBps) * machine.sms / sms;
}

Curve product_curve(const Operator& op, int sms, const MachineFacts& machine) {
  return {{{part(start), overhead(machine)}},
          {{"compute", {{part(compute), compute_us(op, sms, machine)}}},
           {"memory", {{part(memory), memory_us(op, sms, machine)}}}}};
}

double fastest_us(const Operator& op, int sms, const MachineFacts& machine) {
  return std::max(kLeastCompute * compute_us(op, sms, machine), memory_us(op, sms, machine));
}

Curve decode_curve(const Operator& op, int sms, const MachineFacts& machine) {
  Curve curve{{{part(start), overhead(machine)}}, {}};
  curve.fixed_us = fastest_us(op, sms, machine);
  return curve;
}

// AITER's layer: rows are sorted in a kernel of its own, which has the start-up; the first product gathers them and
// ends with the activation, the second one adds up as it writes. What else a fused layer has takes no time.
Curve layer_curve(const Operator& op, int sms, const MachineFacts& machine) {
  Curve curve;
  if (op.experts.role == ExpertRole::routing) curve.always = {{part(start), overhead(machine)}};
  if (is_gemm(op.family)) curve.fixed_us = fastest_us(op, sms, machine);
  return curve;
}

}  // namespace
}  // namespace peaks_curves

std::vector<Form> peaks_forms() {
  using namespace peaks_curves;
  return {{"hipblaslt",
           {{"start_us"}, {"compute_roofline_multiple", kLeastCompute}, {"memory_roofline_multiple", 1}},
           product_curve},
          {"paged_attention_rocm", {{"start_us"}}, decode_curve},
          {"aiter_experts", {{"start_us"}}, layer_curve}};
}

}  // namespace moeline
