// How many requests may decode at once: slots, of which every request holds one from its first token to its last.
#pragma once

#include <string>
#include <vector>

#include "experiments/plan/points.hpp"

namespace moeline {

/// Share of requests that find all slots taken, of an M/M/k queue with k = `slots` and `busy` of them taken on average
/// (Halfin and Whitt, "Heavy-Traffic Limits for Queues with Many Exponential Servers", 1981; within 0.03 of Erlang's C
/// from 20 slots on). With other service times the chance is nearly the same where slots are many. 1 where busy >=
/// slots.
[[nodiscard]] double share_that_waits(double slots, double busy);

/// Share of requests that may wait for a slot where `percentile` of them are to be in time: a tenth of those that may
/// be late, as who waits for a slot waits for an answer to end, which takes seconds.
[[nodiscard]] inline double may_wait(double percentile) { return (1 - percentile / 100) / 10; }

/// The fewest units of `slots_per_unit` slots with which at most `share` of requests wait.
[[nodiscard]] int units_for(double busy, double slots_per_unit, double share);

// Decode: how many requests a GPU may hold, and how many GPUs that takes.

struct DecodeOption {
  DecodeChoice choice;
  StepPoint step{};
  double tpot_ms = 0;
  int fits_requests = 0;       ///< per GPU, by memory
  int units = 0;               ///< with which no more requests wait for a slot than the limits' percentile leaves
  int spares = 0;              ///< more units, for when one fails
  double rented_per_unit = 0;  ///< GPUs
  double busy_slots = 0;       ///< on average
  std::string bound_by{};      ///< what keeps the batch from being larger, or its steps from being shorter

  [[nodiscard]] int gpus() const { return (units + spares) * choice.gpus(); }
  [[nodiscard]] double rented() const { return (units + spares) * rented_per_unit; }
  [[nodiscard]] double utilization() const {
    return busy_slots / (1.0 * units * choice.unit.attention_groups() * choice.batch_size);
  }
};

/// With fewer GPUs rented and then used, then with the shorter TPOT; of those that are alike in both the smaller unit
/// and batch.
[[nodiscard]] bool is_better(const DecodeOption& a, const DecodeOption& b);

/// One way of decoding, with all its batch sizes.
struct DecodeFamily {
  DecodeChoice choice;  ///< without batch size
  int fits_requests = 0;
  std::string impossible{};             ///< why it cannot be at all
  std::vector<DecodeOption> options{};  ///< by batch size; all fit into memory, some are slower than the limit
  /// With the fewest GPUs, then the shortest TPOT, of those within the limit; null: there is none.
  [[nodiscard]] const DecodeOption* best(double tpot_limit_ms) const;
};

/// Simulates the batch sizes of a family, and where the plan lists none also the largest within the limit on TPOT.
[[nodiscard]] DecodeFamily decode_family(const Plan& plan, const Points& points, const DecodeChoice& choice);

}  // namespace moeline
