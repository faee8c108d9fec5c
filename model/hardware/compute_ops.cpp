// OPs of linear layers and of kernels bound by memory.
#include <algorithm>
#include <cmath>

#include "hardware/op_keys.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/all_to_all.hpp"
#include "moe/fused_experts.hpp"
#include "moe/kernels.hpp"

namespace moeline {

namespace {

const std::vector<std::string> kLinearTypes = {"fp8", "bf16", "fp8_tensor", "fp8_static", "nvfp4"};

struct LinearShape {
  double m, n, k;
};

LinearShape linear_shape(const OpKeys& keys) {
  return {keys.size("m", 4096), keys.size("n", 7168), keys.size("k", 16384)};
}

}  // namespace

RequestedOp gemm_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"dtype", "m", "n", "k", "l2"});
  const Precision precision = precision_named(keys.choice("dtype", kLinearTypes));
  const LinearShape shape = linear_shape(keys);
  return keys.requested(text, {kernels::linear_gemm(precision, text, shape.m, shape.n, shape.k)}, machine);
}

RequestedOp linear_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"dtype", "m", "n", "k", "l2"});
  std::vector<std::string> types = kLinearTypes;
  types.emplace_back("int4");
  const Precision precision = precision_named(keys.choice("dtype", types));
  const LinearShape shape = linear_shape(keys);
  if (precision == Precision::int4) {
    return keys.requested(text, {kernels::unpacking_gemm(Precision::int4, text, shape.m, shape.n, shape.k)}, machine);
  }
  std::vector<Operator> kernels;
  if (precision != Precision::bf16) {
    kernels.push_back(kernels::linear_cast(precision, "cast of " + text, shape.m, shape.n, shape.k));
  }
  kernels.push_back(kernels::linear_gemm(precision, text, shape.m, shape.n, shape.k));
  return keys.requested(text, std::move(kernels), machine);
}

// One product for each head, m rows of each: those around absorbed MLA's core.
RequestedOp batched_gemm_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"dtype", "heads", "m", "n", "k", "l2"});
  const double heads = keys.size("heads", 128);
  const Precision precision = precision_named(keys.choice("dtype", {"bf16", "fp8"}));
  return keys.requested(
      text,
      {kernels::per_head_gemm(precision, text, heads, keys.size("m", 64), keys.size("n", 512), keys.size("k", 128))},
      machine);
}

// The first product of DeepSeek-V3's experts, of which the rank has so many: a stack's tables have whole layers of
// them.
RequestedOp grouped_gemm_op(const std::string& text, const MachineFacts& machine) {
  constexpr double kExperts = 256, kTopK = 8, kGated = 2;
  const OpKeys keys(text, {"layout", "dtype", "groups", "m", "n", "k", "l2"});
  const bool masked = keys.choice("layout", {"contiguous", "masked"}) == "masked";
  const Precision precision = precision_named(keys.choice("dtype", {"fp8", "bf16"}));
  const double groups = keys.size("groups", 4);
  const double each = keys.size("m", masked ? 256 : 8192);
  const double rows = groups * (masked ? each : std::ceil(each / kRowPadding) * kRowPadding);
  Operator op = kernels::gemm(gemm_family(masked ? GemmLayout::masked : GemmLayout::contiguous, precision), text, rows,
                              keys.size("n", 4096), keys.size("k", 7168), groups);
  op.experts = {.role = ExpertRole::gate_up,
                .tokens = groups * each / kTopK,
                .hidden = op.k,
                .width = op.n / kGated,
                .top_k = kTopK,
                .experts = std::max(kExperts, groups),
                .gate = kGated,
                .weights = precision,
                .math = precision,
                .layout = masked ? ExpertLayout::masked : ExpertLayout::contiguous,
                .rows = groups * each,
                .hit = groups};
  op.experts.ep = op.experts.experts / groups;
  op.experts.tokens *= op.experts.ep;
  op.measured_as = measured_expert_layer(op.experts);
  return keys.requested(text, {op}, machine);
}

RequestedOp memory_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"kind", "bytes", "l2"});
  const std::vector<std::pair<std::string, Family>> kinds = {
      {"streaming", Family::streaming},           {"rowwise", Family::rowwise},       {"swiglu", Family::swiglu},
      {"cast_transpose", Family::cast_transpose}, {"requantize", Family::requantize}, {"strided", Family::strided}};
  std::vector<std::string> names;
  for (const auto& [name, family] : kinds) names.push_back(name);
  const std::string kind = keys.choice("kind", names);
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
  const double bytes = keys.spec().has("bytes") ? keys.spec().number("bytes", 1, 1e15) : 4096.0 * 7168 * 4;
  return keys.requested(text, {kernels::memory(found->second, text, bytes)}, machine);
}

}  // namespace moeline
