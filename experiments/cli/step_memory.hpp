// What each rank of a pipeline holds in memory over a step of training.
#pragma once

#include "experiments/cli/step_report.hpp"

namespace moeline {

/// Weights, gradients and optimizer states of the rank's stages stay; what a pass saves is there from the start of its
/// F until the end of the slot that computes its weights' gradients, or the start of the next slot if that comes first.
/// REQUIRES: the report has its slots.
void add_memory(const Setup& setup, const Program& program, StepReport& report);

}  // namespace moeline
