// How much each observation counts in the fit.
#pragma once

#include <vector>

#include "calib/fit/observation.hpp"

namespace moeline {

using Weights = std::vector<double>;  ///< of errors in us, by observation

/// 1 / measured where timed, 1 / sqrt(max(measured, 20 us)) where profiled: purely relative errors would let a small
/// kernel outweigh attention, absolute ones would see nothing else.
[[nodiscard]] Weights weights_of(const std::vector<Observation>& observations);

/// The same, but for timed rows that are outliers by these constants: their relative error is beyond 25 % and beyond
/// three standard deviations of their family's errors, told from the median; of at least eight rows. The farther off
/// they are, the less they count: their pull on the constants falls as 1 / error^5.
[[nodiscard]] Weights robust_weights(const std::vector<Observation>& observations, const Constants& constants);

}  // namespace moeline
