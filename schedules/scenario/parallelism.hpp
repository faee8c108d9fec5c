// How ranks share a model.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>

namespace moeline {

/// Ranks are numbered so that those of an attention group follow each other, and so do those that share experts; those
/// of a pipeline's next stage come after all of one.
struct Parallelism {
  int tp = 1, dp = 1;      ///< of attention; world = tp x cp x dp x pp
  int cp = 1;              ///< ranks, or tensor parallel groups of them, that share the tokens of a sequence
  int ep = 1, moe_tp = 1;  ///< of experts; ep x moe_tp divides tp x cp x dp, and holds whole attention groups
  int pp = 1;
  int virtual_pp = 1;  ///< model chunks per rank of interleaved-1f1b
  [[nodiscard]] std::int64_t world() const { return std::int64_t{tp} * cp * pp * dp; }
  /// That work on the same requests.
  [[nodiscard]] int gpus_of_request() const { return attention_ranks() * pp; }
  /// Ranks that wait for each other in a layer.
  [[nodiscard]] int group() const { return std::max(attention_ranks(), ep * moe_tp); }
  /// Of an attention group, which share requests.
  [[nodiscard]] int attention_ranks() const { return tp * cp; }
  /// Attention groups among those that wait for each other, each with requests of its own.
  [[nodiscard]] int attention_groups() const { return group() / attention_ranks(); }
  /// Of these ranks, groups with tokens of their own.
  [[nodiscard]] int token_groups() const { return group() / tp; }
  auto operator<=>(const Parallelism&) const = default;
};

/// "EP8", "1 GPU", "TP4 x DP2, EP8", "TP8, EP2 x MoE-TP4"; without pipelines.
[[nodiscard]] std::string short_name(const Parallelism& parallelism);

}  // namespace moeline
