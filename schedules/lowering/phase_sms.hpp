// SMs of a phase, by its overlap plan.
#pragma once

#include "schedules/scenario/overlap_plan.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Of a transfer those that its kernels run on; of another phase those that persistent kernels have, all that transfers
/// leave where the plan does not say. 0: it says nothing, and comm.num_sms holds. Throws SpecError where that is more
/// than the machine has.
[[nodiscard]] int phase_sms(const OverlapPlan& plan, const std::string& phase, const Setup& setup);

/// The most that any transfer holds.
[[nodiscard]] int transfer_sms(const Setup& setup);

}  // namespace moeline
