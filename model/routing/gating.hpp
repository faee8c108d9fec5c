// Which experts tokens choose, drawn at random.
#pragma once

#include <cstddef>

#include <vector>

#include "architecture/architecture.hpp"
#include "base/random.hpp"

namespace moeline {

/// Group-limited top-k (DeepSeek-V3, arXiv 2412.19437, section 2.1.2): the kept groups are those with the largest sum
/// of their two best scores; the best experts inside them are chosen. One group: plain top-k.
struct Gating {
  int experts = 0;
  int top_k = 0;
  int groups = 1;
  int kept_groups = 1;
};

[[nodiscard]] Gating gating_of(const Architecture& model);

/// The model with the gating of DeepEP's benchmark: one expert group per node, at most four of them chosen.
[[nodiscard]] Architecture benchmark_gating(Architecture model, int nodes);

/// Tokens one after another; equal seeds give equal tokens. REQUIRES of all: groups divides experts, and the kept
/// groups have at least top_k experts.
class TokenStream {
 public:
  /// Scores are uniform: every expert is chosen equally often.
  TokenStream(const Gating& gating, unsigned seed) : TokenStream(gating, seed, {}) {}

  /// Experts are chosen about in proportion to `loads`, and exactly so for few experts of many: score u^(1/w) with
  /// w = -ln(1 - p) and p the share of tokens that must choose the expert (order sampling with fixed shares; Rosen,
  /// J. Statist. Plann. Inference 62, 1997), w scaled to mean 1. Equal loads give the uniform scores' tokens.
  /// An expert with a larger share than 1 is chosen by every token. Keeping groups by their best scores favours groups
  /// of much load.
  TokenStream(const Gating& gating, unsigned seed, const std::vector<double>& loads);

  /// The next token's experts, best first. Valid until the next call.
  const std::vector<std::size_t>& next();
  /// A number in [0, 1) from the same sequence, for whatever else chance decides about the token.
  double uniform() { return random_.uniform(); }

 private:
  void draw_keys();
  void keep_best_groups();
  [[nodiscard]] double two_best(std::size_t first) const;

  std::size_t top_k_, kept_groups_, group_size_;
  std::vector<double> weights_;  // empty: uniform scores
  Random random_;
  // Experts are compared by keys: uniform scores themselves, weighted ones' logarithms, which do not underflow.
  std::vector<double> keys_, group_scores_;
  std::vector<std::size_t> groups_, experts_;
};

}  // namespace moeline
