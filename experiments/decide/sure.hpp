// How far such comparisons were off where others measured both sides.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "experiments/decide/setting.hpp"

namespace moeline {

/// What two settings differ in.
enum class DifferenceKind {
  parallelism,
  precision,
  drafts,
  overlap,
  recomputation,
  routing,
  graphs,
  all_to_all,
  batch
};
[[nodiscard]] const std::string& name_of(DifferenceKind kind);
/// Throws UnknownName.
[[nodiscard]] DifferenceKind difference_kind(const std::string& name);

/// Published pairs of one kind, or of all, held against predictions (experiments/studies/decisions).
struct PairErrors {
  std::optional<DifferenceKind> kind{};  ///< none: of all
  int pairs = 0;
  int right = 0;                ///< the faster one is named
  double median_abs_error = 0;  ///< of the ratio of both sides
};

/// So many pairs say something of their kind; of others all pairs do.
inline constexpr int kEnoughPairs = 3;

/// Of each kind that the study has, and of all pairs last. A test holds them against the study.
[[nodiscard]] std::span<const PairErrors> pair_errors();

/// Those of the kind that two settings differ in, where the study has enough pairs of it; else of all.
[[nodiscard]] PairErrors errors_between(const DecideSetting& a, const DecideSetting& b);

}  // namespace moeline
