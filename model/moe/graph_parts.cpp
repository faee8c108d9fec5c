#include "moe/graph_parts.hpp"

#include <algorithm>

#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace module_names;

bool is_from(const Operator& op, const char* module) { return op.module == module; }

// The output projection, and what tensor parallel ranks exchange around it.
bool is_output(const Operator& op) { return is_from(op, kOutput) || is_from(op, kAttentionSum); }

// attn(F) ends with the norm of the next network, and in MoE layers with the router and what precedes dispatch; all of
// it stands behind the output projection and the residual add. attn(B) begins with the same.
std::size_t end_of_attention(const std::vector<Operator>& ops) {
  const auto output = std::find_if(ops.rbegin(), ops.rend(), is_output);
  return static_cast<std::size_t>(ops.rend() - output) + 1;
}
std::size_t begin_of_attention(const std::vector<Operator>& ops) {
  return static_cast<std::size_t>(std::find_if(ops.begin(), ops.end(), is_output) - ops.begin());
}

bool has_module(const std::vector<Operator>& ops, std::string_view module) {
  return std::any_of(ops.begin(), ops.end(), [&](const Operator& op) { return op.module.starts_with(module); });
}

// NCCL's all-to-all is preceded by counts and permutation. DeepEP lays out tokens in its own dispatch.
bool precedes_dispatch(const Operator& op) {
  return is_from(op, kPermutation) || (is_from(op, kDispatchInput) && is_collective(op.family));
}

}  // namespace

std::vector<bool> in_graphs(const std::string& phase, const std::vector<Operator>& ops, const GraphParts& parts) {
  std::vector<bool> captured(ops.size(), false);
  if (!parts.any()) return captured;
  const auto capture = [&](std::size_t from, std::size_t to, bool part) {
    for (std::size_t i = from; i < std::min(to, ops.size()); ++i) {
      captured[i] = precedes_dispatch(ops[i]) ? parts.moe_preprocess : part;
    }
  };
  const bool beside_attention = has_module(ops, kRouterGate) ? parts.moe_router : parts.mlp;
  if (phase == "attn(F)") {
    const std::size_t end = end_of_attention(ops);
    capture(0, end, parts.attn);
    capture(end, ops.size(), beside_attention);
  } else if (phase == "attn(B)") {
    const std::size_t begin = begin_of_attention(ops);
    capture(0, begin, beside_attention);
    capture(begin, ops.size(), parts.attn);
  } else if (phase == "attn(W)") {
    capture(0, ops.size(), parts.attn);
  } else if (phase.starts_with("dispatch")) {
    for (std::size_t i = 0; i < ops.size(); ++i) captured[i] = parts.moe_preprocess && precedes_dispatch(ops[i]);
  } else if (phase.starts_with("mlp") && has_module(ops, kDenseDown)) {
    capture(0, ops.size(), parts.mlp);
  }
  return captured;
}

}  // namespace moeline
