// How many experts the tokens of a measured step reached, by what reading their weights took.
#pragma once

#include <optional>
#include <vector>

#include "experiments/learn/operators.hpp"

namespace moeline {

/// By MoE layer, in order: at the HBM's peak no more can have been read in the time that the layer's products took, and
/// no more are reached than by tokens that choose all alike. Nothing where no layer's time says that they were fewer,
/// or where the experts are not read by one fused layer of kernels.
[[nodiscard]] std::optional<std::vector<double>> experts_reached(const ObservedStep& step, const AlignedStep& aligned,
                                                                 const Run& run);

}  // namespace moeline
