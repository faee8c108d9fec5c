// Experts that traffic does not choose alike: tokens of one step then reach fewer of them than tokens that choose
// evenly. Ranks have popular experts in equal parts, so that each gets the same on average; how uneven ranks are is
// another question, that power laws and files of loads answer (expert_loads.hpp).
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "base/random.hpp"

namespace moeline {

/// How a token chooses `top_k` different ones of `slots` experts, or their copies, on `ranks` ranks: one after the
/// other, of those left the r-th most popular of its rank, r from 1, with weight r^-skew. 0: all alike.
struct ExpertChoice {
  int top_k = 0, slots = 0, ranks = 1;
  double skew = 0;
  [[nodiscard]] int local() const { return slots / ranks; }
  auto operator<=>(const ExpertChoice&) const = default;
};

/// Skew of served models, on one rank: that by which TPOT goes with the number of requests as it does in others' runs
/// on B200, whatever its level. Of 0, 0.4, 0.7 and 1.2 it was chosen by vLLM's rows, whose errors then differ least
/// between few requests and many; SGLang's differ less, too, TensorRT-LLM's as much as without skew
/// (experiments/studies/traffic_of_a_step). Models are unlike: DeepSeek's and Kimi's rows want 0 to 0.4, MiniMax's,
/// Qwen3.5's and gpt-oss' 0.7 to 1.2; in a trace of Qwen3-30B-A3B, whose 16 tokens read 51.5 of 128 experts, it is 1.2.
inline constexpr double kUsualSkew = 0.7;

/// Probability that a token chooses each expert of a rank, the most popular first.
/// 1 - exp(-t w) for an expert of weight w, with the t by which they add up to top_k / ranks (order sampling; Rosen,
/// J. Statist. Plann. Inference 62, 1997). Thread-safe.
/// REQUIRES: 0 < top_k <= slots, and the ranks divide the slots.
[[nodiscard]] std::vector<double> chances_of(const ExpertChoice& choice);

/// Where on its rank each of so many experts lies, the most popular first: spread, so that any part of the rank's
/// experts has its share of popular ones.
[[nodiscard]] std::vector<std::size_t> places_by_popularity(std::size_t local);

/// Distinct experts of all ranks that so many tokens choose together, expected.
[[nodiscard]] double experts_hit(double tokens, const ExpertChoice& choice);

inline constexpr double kMostSkew = 16;

/// The skew by which tokens reach so many experts, whatever the choice's own; 0 where even tokens that choose alike
/// reach no more, and at most kMostSkew.
[[nodiscard]] double skew_that_hits(double hit, double tokens, ExpertChoice choice);

/// Draws the experts of tokens, one token after the other.
class TokenChoices {
 public:
  explicit TokenChoices(const ExpertChoice& choice);

  /// Adds one token to the slots of its experts. A rank's slots follow each other, by places_by_popularity().
  void add_token(BriefRandom& random, std::vector<int>& rows_of_slots);

 private:
  [[nodiscard]] std::size_t next_choice(double uniform, double left) const;

  ExpertChoice choice_;
  std::vector<std::size_t> slot_of_;  ///< where the rows of weights_ count
  std::vector<double> weights_;       ///< of all slots, the most popular of each rank first
  double all_weights_;
  std::vector<char> is_chosen_;      ///< in the order of weights_; 0 between tokens
  std::vector<std::size_t> chosen_;  ///< of the last token
};

}  // namespace moeline
