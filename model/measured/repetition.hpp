// A program that repeats itself, found without annotations.
#pragma once

#include <cstdint>
#include <vector>

namespace moeline {

/// Positions at which a sequence begins anew: the smallest period at which at least nine tenths of it equal what stands
/// one period later, in at least three repetitions. Empty where there is none. O(n) per candidate, few candidates.
[[nodiscard]] std::vector<std::size_t> repetitions(const std::vector<std::uint32_t>& sequence);

}  // namespace moeline
