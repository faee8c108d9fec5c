// How a scenario splits the model over ranks, and how what it splits comes together: the keys of parallelism and comm.
#pragma once

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

inline constexpr int kMostRanks = 1 << 20;

/// tp, pp and dp around a given ep, of training.
[[nodiscard]] Parallelism read_world(const Spec& spec, int ep);
[[nodiscard]] Parallelism read_parallelism(const Spec& spec, const Scenario& scenario, const Architecture& model,
                                           int gpus_per_node);

/// Where they do not enter, they must still be spelt right.
void check_comm_keys(const Spec& spec);
/// REQUIRES: `setup` has its scenario's parallelism.
[[nodiscard]] Comm read_comm(const Spec& spec, const Setup& setup);
/// Refuses widths that the split does not leave whole blocks of. REQUIRES: `setup` has its scenario's comm.
void check_widths(const Spec& parallelism, const Setup& setup);

}  // namespace moeline
