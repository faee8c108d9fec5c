// What of a scenario says how a rank runs its experts.
#pragma once

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Whether experts run as one fused layer, of which there may be several kinds. REQUIRES: comm has been read.
[[nodiscard]] bool runs_fused(const Setup& setup);

/// Whether shared experts may run elsewhere than before the routed ones: there are some, and it is no training.
[[nodiscard]] bool serves_shared_experts(const Setup& setup);

/// Which kernels a fused layer of experts consists of. REQUIRES: comm has been read.
[[nodiscard]] MoeBackend read_moe_backend(const Spec& spec, const Setup& setup);

/// Whether the kernels have the model's experts in one kernel with their transfers.
[[nodiscard]] bool has_mega_moe(const Setup& setup);

/// Whether shared experts run beside the routed ones. REQUIRES: comm and launch have been read.
[[nodiscard]] SharedExperts read_shared_experts(const Spec& spec, const Setup& setup);

}  // namespace moeline
