// How a scenario splits the model over ranks: the keys of parallelism.
#pragma once

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

inline constexpr int kMostRanks = 1 << 20;

/// The ranks around a given ep, of training.
[[nodiscard]] Parallelism read_world(const Spec& spec, int ep);
[[nodiscard]] Parallelism read_parallelism(const Spec& spec, const Scenario& scenario, const Architecture& model,
                                           int gpus_per_node);

/// Refuses widths that the split does not leave whole blocks of. REQUIRES: `setup` has its scenario's comm.
void check_widths(const Spec& parallelism, const Setup& setup);

}  // namespace moeline
