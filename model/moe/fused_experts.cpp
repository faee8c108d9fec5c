#include "moe/fused_experts.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "moe/all_to_all.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

bool packed(const ExpertShape& shape) { return number_bytes(shape.weights) < 1; }

bool quantises(const ExpertShape& shape) { return shape.math != Precision::bf16; }

// Bytes that a kernel moves whose rows are given work of their own, one by one where it quantises them.
Operator by_rows(const ExpertShape& shape, Family family, std::string name, double rows, double bytes) {
  if (quantises(shape)) return rowwise(std::move(name) + " and quantise", rows, bytes);
  return memory(family, std::move(name), bytes);
}

Operator routing_kernel(const ExpertShape& shape) {
  return routing_scan("sort choices by expert", shape.tokens * shape.top_k);
}

Operator permute_kernel(const ExpertShape& shape) {
  const ExpertRows load = expert_rows(shape);
  const double out = expert_input_bytes(shape);
  if (shape.layout == ExpertLayout::contiguous) {  // rows travelled in the type of the GEMM
    return memory(Family::streaming, "copy rows to experts", load.rows * shape.hidden * 2 * out);
  }
  const double tokens = std::min(tokens_there(shape), load.rows);  // of which the rank needs a copy at least
  return by_rows(shape, Family::streaming, "copy tokens to rows", load.rows,
                 shape.hidden * (tokens * kBf16 + load.rows * out));
}

Operator activation_kernel(const ExpertShape& shape) {
  const ExpertRows load = expert_rows(shape);
  const double bytes = load.rows * shape.width * (shape.gate * kBf16 + expert_input_bytes(shape));
  if (shape.gate > 1) return memory(Family::swiglu, "SwiGLU", bytes);
  return by_rows(shape, Family::streaming, "activation", load.rows, bytes);
}

// A fused layer writes the tokens that are there, zeroes where no row is this one's; DeepEP's, those that it received.
Operator finalise_kernel(const ExpertShape& shape) {
  const double rows = expert_rows(shape).rows;
  const double tokens = shape.layout == ExpertLayout::fused ? tokens_there(shape) : std::min(shape.tokens, rows);
  return memory(Family::streaming, "weigh and reduce rows to tokens", (rows + tokens) * shape.hidden * kBf16);
}

Operator product_kernel(const ExpertShape& shape, ExpertRole role, const char* name) {
  const ExpertRows load = expert_rows(shape);
  const ExpertMatrix matrix = expert_matrix(shape, role);
  const bool masked = shape.layout == ExpertLayout::masked;
  const double rows = shape.layout == ExpertLayout::contiguous
                          ? load.hit * std::ceil(load.each / kRowPadding) * kRowPadding
                          : load.rows;
  const Family family = gemm_family(masked ? GemmLayout::masked : GemmLayout::contiguous, shape.math);
  Operator op = gemm(family, name, rows, matrix.n, matrix.k, load.local);
  op.precision = shape.math;
  op.padding_flops = rows > 0 ? op.flops * (1 - load.rows / rows) : 0;
  op.bytes = load.hit * matrix.n * matrix.k * expert_weight_bytes(shape) +
             load.rows * (matrix.k * expert_input_bytes(shape) + matrix.n * kBf16);
  return op;
}

// Rows come from the ranks of their tokens, and results go back there: each way, over NVLink, what is not the rank's
// own.
Operator whole_layer(const ExpertShape& shape) {
  const ExpertRows load = expert_rows(shape);
  const double matrices = (shape.gate + 1) * shape.width;
  Operator op =
      gemm(gemm_family(GemmLayout::contiguous, shape.math), "mega_moe", load.rows, matrices, shape.hidden, load.local);
  op.precision = shape.math;
  const double moved = shape.hidden * (expert_input_bytes(shape) + kBf16);
  op.bytes = load.hit * matrices * shape.hidden * expert_weight_bytes(shape) + load.rows * moved;
  op.traffic.ranks = static_cast<int>(shape.ep);
  op.traffic.nvlink_bytes = load.rows * (1 - 1 / shape.ep) * moved;
  return op;
}

}  // namespace

const std::vector<std::string>& expert_layouts() {
  static const std::vector<std::string> kNames = {"fused", "masked", "contiguous", "mega"};
  return kNames;
}

const std::vector<std::string>& expert_roles() {
  static const std::vector<std::string> kNames = {"routing", "permute",  "gate_up", "activation",
                                                  "down",    "finalise", "layer"};
  return kNames;
}

const std::string& name_of(ExpertLayout layout) { return expert_layouts()[static_cast<std::size_t>(layout)]; }

const std::string& name_of(ExpertRole role) {
  MOELINE_CHECK(role != ExpertRole::none, "has no name");
  return expert_roles()[static_cast<std::size_t>(role) - 1];
}

ExpertRows expert_rows(const ExpertShape& shape) {
  ExpertRows load;
  load.local = shape.experts / shape.ep;
  load.rows = shape.rows ? *shape.rows : std::max(1.0, shape.tokens * shape.top_k / shape.ep);
  load.hit = std::min({load.local, load.rows, shape.hit.value_or(load.local)});
  load.each = load.hit > 0 ? load.rows / load.hit : 0;
  return load;
}

double tokens_there(const ExpertShape& shape) {
  return shape.received > 0 ? std::min(shape.received, shape.tokens) : shape.tokens;
}

ExpertMatrix expert_matrix(const ExpertShape& shape, ExpertRole role) {
  MOELINE_CHECK(role == ExpertRole::gate_up || role == ExpertRole::down, "of a GEMM");
  if (role == ExpertRole::down) return {shape.hidden, shape.width};
  return {shape.gate * shape.width, shape.hidden};
}

double expert_weight_bytes(const ExpertShape& shape) {
  return packed(shape) ? bytes_per_weight(shape.weights) : number_bytes(shape.weights);
}

double expert_input_bytes(const ExpertShape& shape) {
  return packed(shape) ? activation_bytes(shape.math) : number_bytes(shape.math);
}

bool has_role(ExpertLayout layout, ExpertRole role) {
  if (layout == ExpertLayout::mega || role == ExpertRole::layer) {
    return layout == ExpertLayout::mega && role == ExpertRole::layer;
  }
  switch (role) {
    case ExpertRole::none:
    case ExpertRole::layer:
      return false;
    case ExpertRole::routing:
      return layout == ExpertLayout::fused;
    case ExpertRole::permute:
    case ExpertRole::finalise:
      return layout != ExpertLayout::masked;
    case ExpertRole::gate_up:
    case ExpertRole::activation:
    case ExpertRole::down:
      break;
  }
  return true;
}

std::string measured_expert_layer(const ExpertShape& shape) {
  std::string name = "moe_";
  if (shape.layout != ExpertLayout::fused) name += name_of(shape.layout) + "_";
  name += name_of(shape.weights);
  if (shape.weights == Precision::mxfp4 && shape.math == Precision::fp8) name += "_fp8";
  return shape.gate > 1 ? name : name + "_nongated";
}

std::vector<Operator> fused_experts(const ExpertShape& shape) {
  KernelList list;
  const std::string measured_as = measured_expert_layer(shape);
  const auto add = [&](const char* module, ExpertRole role, Operator op) {
    if (!has_role(shape.layout, role)) return;
    op.measured_as = measured_as;
    op.experts = shape;
    op.experts.role = role;
    list.add(module, std::move(op));
  };
  add(kPermutation, ExpertRole::routing, routing_kernel(shape));
  add(kPermutation, ExpertRole::permute, permute_kernel(shape));
  add(kExpertGateUp, ExpertRole::gate_up,
      product_kernel(shape, ExpertRole::gate_up, shape.gate > 1 ? "expert gate_up" : "expert up"));
  add(kExpertActivation, ExpertRole::activation, activation_kernel(shape));
  add(kExpertDown, ExpertRole::down, product_kernel(shape, ExpertRole::down, "expert down"));
  add(kPermutation, ExpertRole::finalise, finalise_kernel(shape));
  add(kExpertLayer, ExpertRole::layer, whole_layer(shape));
  return std::move(list.ops());
}

}  // namespace moeline
