// OPs of routed experts.
#include <fmt/format.h>

#include <cmath>

#include "hardware/op_keys.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/fused_experts.hpp"
#include "moe/tensor_parallel.hpp"

namespace moeline {
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
  shape.backend =
      keys.choice("backend", {"usual", "trtllm_gen"}) == "usual" ? MoeBackend::usual : MoeBackend::trtllm_gen;
  if (shape.backend != MoeBackend::usual && shape.layout != ExpertLayout::fused) {
    throw keys.spec().error("backend", "is for layout=fused");
  }
  shape.gate = keys.choice("gated", {"true", "false"}) == "true" ? 2 : 1;
  shape.tokens = keys.number_or("tokens", kLeastTokens, kMostOfOp, 4096);
  shape.hidden = keys.size("hidden", 7168);
  shape.width = width_of(keys, format.weights);
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
  shape.rows = keys.amount("rows", 0);
  shape.hit = keys.number_or("hit", kLeastTokens, kMostOfOp, 0);
  if (shape.hit > local) {
    throw keys.spec().error("hit", fmt::format("of {} is more than the {} experts of a rank", shape.hit, local));
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
  const OpKeys keys(text, {"dtype", "tokens", "hidden", "inter", "top_k", "experts", "ep", "moe_tp", "gated", "layout",
                           "part", "backend", "rows", "hit", "deviation", "expected", "eager", "l2"});
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
