// Why one setting is faster than another: what it saves, and what it pays for that.
#pragma once

#include <string>
#include <vector>

#include "experiments/decide/decision.hpp"

namespace moeline {

struct PartDifference {
  std::string what;
  double from_us = 0, to_us = 0;
  [[nodiscard]] double us() const { return to_us - from_us; }  ///< below 0: it saves so much
};

/// Parts of both, those that only one has as 0 of the other; the largest difference first.
[[nodiscard]] std::vector<PartDifference> differences(const std::vector<TimePart>& from,
                                                      const std::vector<TimePart>& to);

/// "saves 31.2 us of GEMMs and 4.0 of small kernels, pays 12.0 us of combine": the three largest of each that are a
/// twentieth of all that is saved and paid at least.
[[nodiscard]] std::string saves_and_pays(const std::vector<PartDifference>& parts);

}  // namespace moeline
