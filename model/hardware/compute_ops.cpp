// OPs of linear layers, of kernels bound by memory, and of routed experts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/op_kinds.hpp"
#include "moe/all_to_all.hpp"
#include "moe/fused_experts.hpp"
#include "moe/kernels.hpp"
#include "moe/small_kernels.hpp"
#include "moe/tensor_parallel.hpp"

namespace moeline {

// OPs of linear layers and of kernels bound by memory.

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
  const OpKeys keys(text, {"dtype", "m", "n", "k", "streams", "l2"});
  const Precision precision = precision_named(keys.choice("dtype", kLinearTypes));
  const LinearShape shape = linear_shape(keys);
  Operator op = kernels::linear_gemm(precision, text, shape.m, shape.n, shape.k);
  op.streams = static_cast<int>(keys.size("streams", 1));
  return keys.requested(text, {op}, machine);
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

namespace {

// A small kernel of a layer. Those that choose experts are told by the scores that they go through.
Operator small_kernel(SmallKernel kind, const std::string& text, double bytes) {
  const bool scans = family_of(kind) == Family::routing_scan;
  Operator op =
      scans ? kernels::routing_scan(text, bytes / kScoreBytes) : kernels::memory(family_of(kind), text, bytes);
  return as_small(kind, std::move(op));
}

}  // namespace

RequestedOp memory_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"kind", "bytes", "l2"});
  const std::vector<std::pair<std::string, Family>> kinds = {
      {"streaming", Family::streaming},           {"rowwise", Family::rowwise},       {"swiglu", Family::swiglu},
      {"cast_transpose", Family::cast_transpose}, {"requantize", Family::requantize}, {"strided", Family::strided}};
  std::vector<std::string> names;
  for (const auto& [name, family] : kinds) names.push_back(name);
  names.insert(names.end(), small_kernel_names().begin(), small_kernel_names().end());
  const std::string kind = keys.choice("kind", names);
  const double bytes = keys.spec().has("bytes") ? keys.spec().number("bytes", 1, 1e15) : 4096.0 * 7168 * 4;
  if (const auto small = small_kernel_named(kind)) {
    return keys.requested(text, {small_kernel(*small, text, bytes)}, machine);
  }
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
  return keys.requested(text, {kernels::memory(found->second, text, bytes)}, machine);
}

// OPs of routed experts.

namespace {

// Weights of four bits go with activations of the same, of eight, or of BF16.
struct Format {
  Precision weights, math;
};

Format format_of(const std::string& dtype) {
  if (dtype == "mxfp4_fp8") return {Precision::mxfp4, Precision::fp8};
  const Precision weights = precision_named(dtype);
  return {weights, weights == Precision::nvfp4 ? weights : multiplied_in(weights)};
}

ExpertLayout layout_of(const OpKeys& keys) {
  return choice_of<ExpertLayout>(keys.choice("layout", expert_layouts()), expert_layouts());
}

// The whole layer, or the one kernel of it that is asked for.
ExpertRole part_of(const OpKeys& keys, ExpertLayout layout) {
  if (!keys.spec().has("part")) return ExpertRole::layer;
  const std::string name = keys.spec().choice("part", expert_roles());
  const auto part = static_cast<ExpertRole>(choice_of<int>(name, expert_roles()) + 1);
  if (part != ExpertRole::layer && !has_role(layout, part)) {
    throw keys.spec().error("part", fmt::format("of layout={} there is no {}", name_of(layout), name));
  }
  return part;
}

// What each rank gets of `all`.
double divided(const OpKeys& keys, const char* key, const char* name, double all) {
  const double parts = keys.size(key, 1);
  if (std::fmod(all, parts) != 0) {
    throw keys.spec().error(key, fmt::format("must divide {}: {} does not divide {}", name, parts, all));
  }
  return all / parts;
}

// Blocks of a scale go round where the kernel's weights are padded behind them.
double padded_width(const OpKeys& keys, Precision weights, const ExpertPadding& padding) {
  const double columns = keys.size("inter", 2048), ranks = keys.size("moe_tp", 1);
  if (ranks > columns / scale_block(weights)) {
    throw keys.spec().error("moe_tp", fmt::format("leaves a rank without a block of {} of the {} of an expert's width",
                                                  scale_block(weights), columns));
  }
  return padding.padded_width(columns_of_rank(columns, ranks, weights));
}

double width_of(const OpKeys& keys, Precision weights) {
  const double width = divided(keys, "moe_tp", "inter", keys.size("inter", 2048));
  const double block =
      weights == Precision::int4 ? 1 : scale_block(weights);  // whose groups are as a checkpoint has them
  if (std::fmod(width, block) != 0) {
    throw keys.spec().error("moe_tp", fmt::format("leaves each rank {} of an expert's width, which the {} weights that "
                                                  "share a scale do not divide",
                                                  width, block));
  }
  return width;
}

ExpertShape shape_of(const OpKeys& keys) {
  constexpr double kLeastTokens = 1e-3;  // a mean of what chance sends to a rank
  const Format format =
      format_of(keys.choice("dtype", {"fp8", "fp8_tensor", "bf16", "nvfp4", "mxfp4", "mxfp4_fp8", "int4"}));
  ExpertShape shape;
  shape.weights = format.weights;
  shape.math = format.math;
  shape.layout = layout_of(keys);
  shape.gate = keys.choice("gated", {"true", "false"}) == "true" ? 2 : 1;
  shape.tokens = keys.number_or("tokens", kLeastTokens, kMostOfOp, 4096);
  const int pad = static_cast<int>(keys.size("pad", 1));
  const ExpertPadding padding{.width = pad, .hidden = pad};
  shape.hidden = padding.padded_hidden(keys.size("hidden", 7168));
  shape.width = pad > 1 ? padded_width(keys, format.weights, padding) : width_of(keys, format.weights);
  shape.experts = keys.size("experts", 256);
  shape.top_k = keys.size("top_k", 8);
  if (shape.top_k > shape.experts) {
    throw keys.spec().error("top_k", fmt::format("of {} is more than the {} experts", shape.top_k, shape.experts));
  }
  const double local = divided(keys, "ep", "experts", shape.experts);
  shape.ep = shape.experts / local;
  shape.eager = keys.choice("eager", {"false", "true"}) == "true";
  if (shape.eager && shape.layout != ExpertLayout::contiguous) {
    throw keys.spec().error("eager", "is for layout=contiguous: the other layouts were measured in CUDA graphs");
  }
  shape.received = keys.amount("received", 0);
  if (shape.received > shape.tokens) {
    throw keys.spec().error("received", fmt::format("of {} is more than the {} tokens", shape.received, shape.tokens));
  }
  shape.rows = keys.amount_if_given("rows");
  shape.hit = keys.amount_if_given("hit");
  if (shape.hit && *shape.hit > local) {
    throw keys.spec().error("hit", fmt::format("of {} is more than the {} experts of a rank", *shape.hit, local));
  }
  return shape;
}

// By chance an expert's rows scatter by no more than the root of their number.
double deviation_of(const OpKeys& keys, const ExpertShape& shape) {
  const double deviation = keys.amount("deviation", 0), most = std::sqrt(expert_rows(shape).rows);
  if (deviation > most) {
    throw keys.spec().error("deviation",
                            fmt::format("of {} is more than chance makes of the rank's rows, {:.1f}", deviation, most));
  }
  return deviation;
}

}  // namespace

RequestedOp moe_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"dtype", "tokens", "hidden", "inter", "top_k", "experts", "ep", "moe_tp", "pad", "gated",
                           "layout", "part", "received", "rows", "hit", "deviation", "expected", "eager", "l2"});
  const ExpertShape shape = shape_of(keys);
  const ExpertRole part = part_of(keys, shape.layout);
  const double deviation = deviation_of(keys, shape), expected = keys.amount("expected", 0);
  std::vector<Operator> kernels;
  for (Operator& op : fused_experts(shape)) {
    if (part != ExpertRole::layer && op.experts.role != part) continue;
    op.rows_deviation = deviation;
    op.expected_rows = expected;
    kernels.push_back(std::move(op));
  }
  return keys.requested(text, std::move(kernels), machine);
}

}  // namespace moeline
