// Sets of instants as sorted, disjoint intervals.
#pragma once

#include <vector>

#include "base/time.hpp"

namespace moeline {

struct Interval {
  Time start{};
  Time end{};
};

/// The union, sorted and disjoint; empty intervals vanish.
[[nodiscard]] std::vector<Interval> unite(std::vector<Interval> intervals);

/// Length of the union.
[[nodiscard]] Time covered_by(std::vector<Interval> intervals);

[[nodiscard]] Time total(const std::vector<Interval>& disjoint);

/// Length of the intersection of two sets, each sorted and disjoint.
[[nodiscard]] Time overlap(const std::vector<Interval>& a, const std::vector<Interval>& b);

/// What is in `a` and not in `b`, each sorted and disjoint.
[[nodiscard]] std::vector<Interval> subtract(const std::vector<Interval>& a, const std::vector<Interval>& b);

}  // namespace moeline
