// How ranks share a model.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>

namespace moeline {

/// Ranks are numbered so that those of an attention group follow each other, and so do those that share experts.
struct Parallelism {
  int tp = 1, dp = 1;      ///< of attention; world = tp x pp x dp
  int ep = 1, moe_tp = 1;  ///< of experts; ep x moe_tp divides tp x dp, and holds whole attention groups
  int pp = 1;
  int virtual_pp = 1;  ///< model chunks per rank of interleaved-1f1b
  [[nodiscard]] std::int64_t world() const { return std::int64_t{tp} * pp * dp; }
  /// Ranks that wait for each other in a layer.
  [[nodiscard]] int group() const { return std::max(tp, ep * moe_tp); }
  /// Attention groups among these, each with requests of its own.
  [[nodiscard]] int attention_groups() const { return group() / tp; }
  auto operator<=>(const Parallelism&) const = default;
};

/// "EP8", "1 GPU", "TP4 x DP2, EP8", "TP8, EP2 x MoE-TP4"; without pipelines.
[[nodiscard]] std::string short_name(const Parallelism& parallelism);

}  // namespace moeline
