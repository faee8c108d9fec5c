// Whose kernels train a model, and which models they can.
#pragma once

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// `training.operators`, by default DeepSeek's for FP8 models like theirs, else Megatron's. Brings the model into the
/// number formats that it is trained in. Refuses, with what it asks for, a model that they do not know.
/// REQUIRES: model and precision have been read.
void read_training_operators(const Spec& scenario, Setup& setup);

}  // namespace moeline
