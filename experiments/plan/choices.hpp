// What a plan searches: every way in which a unit of prefill or decode may run on a machine.
#pragma once

#include "architecture/architecture.hpp"
#include "experiments/plan/deployment.hpp"
#include "experiments/plan/plan.hpp"
#include "hardware/profile.hpp"

namespace moeline {

/// Those that the plan lists, crossed, in its order, with every schedule of the table that is for prefill; a list that
/// it leaves out gets a default: units of 1, 2, 4, 8 nodes (prefill), up to 40 nodes (decode), and of a part of a node
/// (1, 2, 4, ... GPUs); 2 to 32 K tokens; a sixth, an eighth and a twelfth of the SMs. Attention groups are single GPUs
/// and, where the plan does not list units and one is no larger than a node, 2, 4, 8, ... of its GPUs. Experts are
/// whole, spread over the unit; one attention group may also split each of them. A dense model has one attention group.
/// Units that leave a GPU without an expert, and, where the plan does not list redundant experts, those that would need
/// more than a quarter of the experts twice, are left out. How tokens reach experts is not said yet (Points).
[[nodiscard]] std::vector<PrefillChoice> prefill_choices(const Plan& plan, const Architecture& model,
                                                         const HardwareProfile& machine);

/// The same, but for the batch size, which follows from memory and latency.
[[nodiscard]] std::vector<DecodeChoice> decode_choices(const Plan& plan, const Architecture& model,
                                                       const HardwareProfile& machine);

/// Requests per attention group that are tried where the plan lists none: by steps of at most a third, up to the most
/// that fit.
[[nodiscard]] std::vector<int> batch_sizes(const Plan& plan, int most);

}  // namespace moeline
