// What chance makes of the time of routed experts: balanced routing scatters tokens, and a rank gets more or fewer
// rows, of more or fewer experts.
#pragma once

#include "hardware/kernel_set.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// Standard deviation over the mean of a kernel's time by a stack's form, to first order: how much longer it takes with
/// one standard deviation more of the rank's rows and of the experts that get any. Both go together; rows of experts
/// count as independent, with Operator::rows_deviation each. 0 where nothing is left to chance.
[[nodiscard]] double deviation_by_chance(const Operator& op, const FamilyFit& fit, int sms,
                                         const MachineFacts& machine);

}  // namespace moeline
