// What a plan searches: every way in which a unit of prefill or decode may run on a machine.
#pragma once

#include "architecture/architecture.hpp"
#include "experiments/plan/deployment.hpp"
#include "experiments/plan/plan.hpp"
#include "hardware/profile.hpp"

namespace moeline {

/// Those that the plan lists, crossed, in its order, with every schedule of the table that is for prefill; a list that
/// it leaves out gets a default: units of 1, 2, 4, 8 nodes (prefill), up to 40 nodes (decode), of a part of a node
/// where a node has more than 16 GPUs; 2 to 32 K tokens; a sixth, an eighth and a twelfth of the SMs. Units that leave
/// a GPU without an expert, and, where the plan does not list redundant experts, those that would need more than a
/// quarter of the experts twice, are left out.
[[nodiscard]] std::vector<PrefillChoice> prefill_choices(const Plan& plan, const Architecture& model,
                                                         const HardwareProfile& machine);

/// The same, but for the batch size, which follows from memory and latency.
[[nodiscard]] std::vector<DecodeChoice> decode_choices(const Plan& plan, const Architecture& model,
                                                       const HardwareProfile& machine);

/// Requests per GPU that are tried where the plan lists none: by steps of at most a third, up to the most that fit.
[[nodiscard]] std::vector<int> batch_sizes(const Plan& plan, int most);

}  // namespace moeline
