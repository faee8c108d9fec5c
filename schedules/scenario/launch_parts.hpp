// How kernels are launched: `launch`.
#pragma once

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Sets `launch` and `graphs`. A list of parts of a layer belongs to training by Megatron's operators.
void read_launch(const Spec& spec, Setup& setup);

}  // namespace moeline
