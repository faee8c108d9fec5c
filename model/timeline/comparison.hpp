// Scores of one phase table against another.
#pragma once

#include <string>
#include <vector>

#include "timeline/phases.hpp"

namespace moeline {

/// a / b - 1; zero where both are zero.
[[nodiscard]] double ratio_error(Time a, Time b);

struct PhasePair {
  PhaseTimes a, b;
  [[nodiscard]] double error() const { return ratio_error(a.span(), b.span()); }
};

struct Score {
  std::vector<PhasePair> phases;         ///< of computation, by layer, in b's order; if there are none, the others
  std::vector<PhasePair> communication;  ///< listed, not scored
  double mean_abs_error = 0;
  double worst_abs_error = 0;
  double mean_error = 0;          ///< signed
  Time a_span{}, b_span{};        ///< time in which any of the phases compared runs
  double span_error = 0;          ///< signed, of these, communication included
  Time a_between{}, b_between{};  ///< from the first to the last of these, time in which no phase of any layer runs
  [[nodiscard]] Time a_elapsed() const { return a_span + a_between; }
  [[nodiscard]] Time b_elapsed() const { return b_span + b_between; }
  /// Signed: of a clock on the wall, but for other layers that a schedule puts between these.
  [[nodiscard]] double elapsed_error() const { return ratio_error(a_elapsed(), b_elapsed()); }
  bool same_order = true;       ///< on every stream
  bool by_micro_batch = false;  ///< there are several, the same on both sides
  bool summed = false;          ///< they differ: the times of a phase's micro-batches are summed
};

struct Null {
  std::string name;
  Score score;
  bool has_span = true;  ///< false where the null has no timeline of its own
};

/// The layers both sides have, or the wanted ones among them, each once, in order. Throws SpecError for a layer that
/// one side lacks.
[[nodiscard]] std::vector<std::uint32_t> common_layers(const std::vector<PhaseTimes>& a,
                                                       const std::vector<PhaseTimes>& b,
                                                       const std::vector<int>& wanted);

/// Pairs phases of one layer and micro-batch; where the two sides differ in their micro-batches (two against one of
/// everything), the times of a phase's micro-batches are summed. Throws SpecError when the two have no phase in common.
[[nodiscard]] Score score(const std::vector<PhaseTimes>& a, const std::vector<PhaseTimes>& b,
                          const std::vector<std::uint32_t>& layers);

/// Null model: each phase of these layers takes the mean of the same phase in the other layers, those not in
/// `layers`, or, if there is none, all but its own. Without phases that no other layer has.
[[nodiscard]] std::vector<PhaseTimes> copied_mean(const std::vector<PhaseTimes>& measured,
                                                  const std::vector<std::uint32_t>& layers);

}  // namespace moeline
