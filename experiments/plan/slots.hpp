// How many requests may decode at once: slots, of which every request holds one from its first token to its last.
#pragma once

namespace moeline {

/// Share of requests that find all slots taken, of an M/M/k queue with k = `slots` and `busy` of them taken on average
/// (Halfin and Whitt, "Heavy-Traffic Limits for Queues with Many Exponential Servers", 1981; within 0.03 of Erlang's C
/// from 20 slots on). With other service times the chance is nearly the same where slots are many. 1 where busy >=
/// slots.
[[nodiscard]] double share_that_waits(double slots, double busy);

/// The fewest units of `slots_per_unit` slots with which at most `share` of requests wait.
[[nodiscard]] int units_for(double busy, double slots_per_unit, double share);

}  // namespace moeline
