// What of a scenario says how a rank runs its experts.
#pragma once

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Which kernels a fused layer of experts consists of. REQUIRES: comm has been read.
[[nodiscard]] MoeBackend read_moe_backend(const Spec& spec, const Setup& setup);

/// Whether the kernels have the model's experts in one kernel with their transfers.
[[nodiscard]] bool has_mega_moe(const Setup& setup);

/// Whether shared experts run beside the routed ones. REQUIRES: comm and launch have been read.
[[nodiscard]] SharedExperts read_shared_experts(const Spec& spec, const Setup& setup);

}  // namespace moeline
