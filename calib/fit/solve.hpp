// Constants from observations: one linear least-squares problem for the whole kernel set.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calib/fit/observation.hpp"

namespace moeline {

/// Minimises the sum of (fitted - measured)^2 / max(measured, 20 us): between relative errors, which would let a small
/// kernel outweigh attention, and absolute ones, which would see nothing else. Throws SpecError naming a constant that
/// the observations do not determine, or that comes out negative.
[[nodiscard]] Constants solve(const std::vector<Observation>& observations);

/// How the constants meet the observations, by family.
[[nodiscard]] std::map<std::string, FamilyFit> assess(const std::vector<Observation>& observations,
                                                      const Constants& constants);

[[nodiscard]] double evaluate(const Observation& observation, const Constants& constants);

}  // namespace moeline
