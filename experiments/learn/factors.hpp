// From the operators of measured steps to the factors of a learnt kernel set.
#pragma once

#include <vector>

#include "experiments/learn/operators.hpp"
#include "hardware/learnt.hpp"

namespace moeline {

/// Operators of one trace, and the run that they were aligned with.
struct LearntFrom {
  const std::vector<OperatorTimes>* operators = nullptr;
  const Run* run = nullptr;
};

/// A factor for each class (learnt_class), measured over simulated, and for each operator its own, shrunk towards that
/// of its class in the logarithm: by s^2 / n over t^2 + s^2 / n, where n of its executions scatter by s (relative), and
/// the operators of the class by t. Of kernels that meet other ranks the shortest execution counts, since longer ones
/// waited. Operators that others do along with their own work have 0. Of several traces the executions count together.
/// Sets `classes` and `operators`.
void learn_factors(const std::vector<LearntFrom>& from, LearntKernels& learnt);

}  // namespace moeline
