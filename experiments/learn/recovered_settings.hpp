// The settings of a step as its trace tells them.
#pragma once

#include <string>

#include "experiments/learn/given_settings.hpp"
#include "experiments/learn/kernel_sequences.hpp"

namespace moeline {

/// Everything that a scenario of the trace's step needs. Throws SpecError, with the trace's file and the option that
/// must be given, where it tells neither machine nor model.
[[nodiscard]] Settings recovered_settings(const Measured& measured, const ObservedStep& step,
                                          const GivenSettings& given, const std::string& file);

}  // namespace moeline
