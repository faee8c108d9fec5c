// A program that repeats itself, found without annotations.
#pragma once

#include <cstdint>
#include <vector>

namespace moeline {

/// Positions at which a sequence begins anew, and the one at which its last whole repetition ends; at least three
/// repetitions, else empty. They are cut at an element that stands once in each: of those whose cuts are alike, one
/// with the most. Two cuts in a row are alike when nine tenths of their elements are the same, whatever their order,
/// so that an element more or less does no harm; one pair in ten need not be alike.
[[nodiscard]] std::vector<std::size_t> repetitions(const std::vector<std::uint32_t>& sequence);

}  // namespace moeline
