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

ExpertLayout layout_of(const std::string& name) {
  if (name == "masked") return ExpertLayout::masked;
  if (name == "mega") return ExpertLayout::mega;
  return name == "contiguous" ? ExpertLayout::contiguous : ExpertLayout::fused;
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
  const Format format =
      format_of(keys.choice("dtype", {"fp8", "fp8_tensor", "bf16", "nvfp4", "mxfp4", "mxfp4_fp8", "int4"}));
  ExpertShape shape;
  shape.weights = format.weights;
  shape.math = format.math;
  shape.layout = layout_of(keys.choice("layout", {"fused", "masked", "contiguous", "mega"}));
  shape.backend =
      keys.choice("backend", {"usual", "trtllm_gen"}) == "usual" ? MoeBackend::usual : MoeBackend::trtllm_gen;
  if (shape.backend != MoeBackend::usual && shape.layout != ExpertLayout::fused) {
    throw keys.spec().error("backend", "is for layout=fused");
  }
  shape.gate = keys.choice("gated", {"true", "false"}) == "true" ? 2 : 1;
  shape.tokens = keys.size("tokens", 4096);
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
  shape.rows = keys.size_or_none("rows");
  shape.hit = keys.size_or_none("hit");
  if (shape.hit > local) {
    throw keys.spec().error("hit", fmt::format("of {} is more than the {} experts of a rank", shape.hit, local));
  }
  return shape;
}

}  // namespace

RequestedOp moe_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"dtype", "tokens", "hidden", "inter", "top_k", "experts", "ep", "moe_tp", "gated", "layout",
                           "backend", "rows", "hit", "eager", "l2"});
  const bool hot = keys.choice("l2", {"cold", "hot"}) == "hot";
  RequestedOp requested{text, fused_experts(shape_of(keys)), keys.all_sms(machine)};
  for (Operator& op : requested.kernels) op.hot = hot;
  return requested;
}

}  // namespace moeline
