// How kernels are launched: `launch`.
#pragma once

#include <string>
#include <vector>

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Sets `launch` and `graphs`. A list of parts of a layer belongs to training by Megatron's operators.
void read_launch(const Spec& spec, Setup& setup);

/// Megatron's names of the parts that run in graphs.
[[nodiscard]] std::vector<std::string> graph_part_names(const GraphParts& parts);

}  // namespace moeline
