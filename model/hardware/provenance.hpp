// How a price is known, and why no better.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "hardware/measured_range.hpp"

namespace moeline {

/// From the best known on.
enum class Provenance {
  measured,      ///< its family was measured at one place, and this is it: the constants give that back
  interpolated,  ///< between measurements of its family, in every dimension
  learnt,        ///< from a trace of the very kernels, over what a kernel set says
  extrapolated,  ///< by the fitted curve, beyond what was measured; the note says in what
  roofline,      ///< no measurement: the least that the machine's peaks allow
  datasheet      ///< by a fact of the machine
};
[[nodiscard]] const char* name_of(Provenance provenance);

/// What --strict lets pass: all but what lies outside the measurements or has none.
[[nodiscard]] constexpr bool is_covered(Provenance provenance) {
  return provenance != Provenance::extrapolated && provenance != Provenance::roofline;
}

/// A reason: the measurements are of another machine.
inline constexpr const char* kOtherMachine = "other machine";

/// Why a price is neither measured nor interpolated; empty of one that is.
struct ProvenanceNote {
  std::set<std::string> reasons;  ///< kOtherMachine
  std::vector<Outside> outside;   ///< of several kernels, by dimension and side, the one that lies farthest outside

  [[nodiscard]] bool empty() const { return reasons.empty() && outside.empty(); }
  void add(const Outside& more);
  void add(const ProvenanceNote& more);
  /// "other machine, m 16 < 64"
  [[nodiscard]] std::string text() const;
};

}  // namespace moeline
