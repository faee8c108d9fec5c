// Which kernels of training's layers run as CUDA graphs where the rest is launched one by one (Megatron-Core's
// --cuda-graph-scope, core/transformer/transformer_layer.py).
#pragma once

#include <string>
#include <vector>

#include "moe/operator.hpp"

namespace moeline {

struct GraphParts {
  bool attn = false;            ///< the norm before attention, attention, and the residual add
  bool mlp = false;             ///< dense layers' feed-forward network with the norm before it
  bool moe_router = false;      ///< the norm before a MoE layer's experts, and its router
  bool moe_preprocess = false;  ///< and what precedes dispatch; goes with the router

  [[nodiscard]] bool any() const { return attn || mlp || moe_router || moe_preprocess; }
  bool operator==(const GraphParts&) const = default;
};

/// Of each kernel of a phase ("attn(B)") of Megatron's operators: it runs in a graph.
[[nodiscard]] std::vector<bool> in_graphs(const std::string& phase, const std::vector<Operator>& ops,
                                          const GraphParts& parts);

}  // namespace moeline
