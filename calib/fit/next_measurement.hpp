// What to measure next: where a family's error is largest, and what that error is made of.
#pragma once

#include <string>
#include <vector>

#include "calib/fit/assess.hpp"

namespace moeline {

enum class Cause {
  leverage,   ///< nothing else tells what this row tells: fitted it is met, left out it is not
  structure,  ///< its neighbours are off in the same direction: the curve lacks something there
  noise       ///< its neighbours are not: one of the rows is wrong, or something that no dimension tells differs
};

struct Advice {
  std::string family;
  std::size_t worst = 0;  ///< observation with the family's largest error
  double error = 0;       ///< of that: predicted / measured - 1, left out where it was
  double fitted_error = 0;
  Cause cause{};
  std::string measure;  ///< the sentence
};

/// One per family of timed observations that has at least three, largest error first. `left_out`: empty without
/// cross-validation. A neighbour is the nearest in the logarithms of the dimensions, rows of the same point aside.
[[nodiscard]] std::vector<Advice> measure_next(const std::vector<Observation>& observations, const Predictions& fitted,
                                               const Predictions& left_out);

}  // namespace moeline
