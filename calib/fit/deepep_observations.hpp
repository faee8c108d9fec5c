// Observations from DeepEP's own benchmark of the normal all-to-all, nothing beside it.
#pragma once

#include "calib/fit/csv.hpp"
#include "calib/fit/observation.hpp"

namespace moeline {

/// The gating of DeepEP's benchmark: one expert group per node, at most four of them chosen.
[[nodiscard]] Architecture benchmark_gating(Architecture model, int nodes);

/// `table` measured on H100 (columns ep, num_token, dispatch_sms, dispatch_transmit_us, combine_sms, ...): the rows
/// with at most 8 SMs and at least 1024 tokens between nodes, where the SMs bind: time per copied byte and SM.
[[nodiscard]] std::vector<Observation> copy_observations(const CsvTable& table, const Architecture& model,
                                                         const MachineFacts& machine);

/// `table` published for H800 (columns mode, ep, op, logical_bandwidth_GBps, note): the rows of February 2025, where
/// the NIC binds. Logical bandwidth counts the own node's tokens.
[[nodiscard]] std::vector<Observation> alone_observations(const CsvTable& table, const Architecture& model,
                                                          const MachineFacts& machine);

}  // namespace moeline
