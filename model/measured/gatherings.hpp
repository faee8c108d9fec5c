// One kernel of a group: when its ranks come together, by clocks that have been set, and whether they leave together.
#pragma once

#include <vector>

#include "base/time.hpp"
#include "measured/communicators.hpp"

namespace moeline {

/// The k-th time that ranks come together in a kernel.
struct Gathering {
  std::size_t last = 0;                    ///< the member that comes last
  std::int64_t first_ns = 0, last_ns = 0;  ///< arrivals
  std::int64_t end_spread_ns = 0;          ///< from the first end to the last
  std::int64_t length_ns = 0;              ///< from the first arrival to the last end
  [[nodiscard]] std::int64_t skew_ns() const { return last_ns - first_ns; }
};

/// `ahead_ns`: by member, how far its clock is ahead.
[[nodiscard]] std::vector<Gathering> gatherings_of(const GroupKernel& kernel,
                                                   const std::vector<std::int64_t>& ahead_ns);

[[nodiscard]] std::int64_t quantile_of(const std::vector<Gathering>& gatherings, double share,
                                       std::int64_t (*value)(const Gathering&));
[[nodiscard]] inline std::int64_t skew_of(const Gathering& g) { return g.skew_ns(); }
[[nodiscard]] inline std::int64_t end_spread_of(const Gathering& g) { return g.end_spread_ns; }

/// Its ends lie no further apart than half its length, by medians.
[[nodiscard]] bool end_together(const std::vector<Gathering>& gatherings);

}  // namespace moeline
