// Observations from benchmarks of DeepEP's all-to-all, nothing beside it.
//
// What was measured on H100 serves an H100 profile whole. For another machine only what the kernels do on their SMs
// carries over: copies where few SMs bind, and start-ups, which show where tokens are few.
#pragma once

#include <string>

#include "base/csv.hpp"
#include "calib/fit/kernel_library.hpp"
#include "calib/fit/observation.hpp"

namespace moeline {

/// What DeepEP's bandwidths count of a whole transfer. Normal mode: payload and scales of every copy between nodes, the
/// own node's included, or within a node of every copy, the own rank's included. Low-latency mode: every message.
[[nodiscard]] double logical_bytes(const Operator& transfer);

/// Rows with this many tokens. Fewer than the default are not for fitting: start-ups, which matter little later, are
/// most of their time.
struct TokenRange {
  double from = 256;
  double below = 1e9;
};

/// Normal mode measured on H100 (columns ep, num_token, dispatch_sms, dispatch_transmit_us, combine_sms, ...). For
/// another machine: rows between nodes with at most 8 SMs. Left out: dispatch at EP16 on 12 SMs, slower at every size
/// than the rows around it. Within a node there are rows for 20 SMs only, which cannot tell SMs from NVLink: taken as
/// NVLink's, since an H20 with the same NVLink is no faster on 24 SMs (deepseek-ai/DeepEP, issue 138).
[[nodiscard]] std::vector<Observation> normal_observations(const CsvTable& table, const Architecture& model,
                                                           const MachineFacts& machine, const TokenRange& tokens = {});

/// Low-latency mode measured on H100 (columns ep, num_token, dispatch_avg_t_us, combine_avg_t_us). For another
/// machine: rows with at most 4 tokens.
[[nodiscard]] std::vector<Observation> low_latency_observations(const CsvTable& table, const Architecture& model,
                                                                const MachineFacts& machine,
                                                                const KernelLibrary& library);

/// Published figures, both modes (columns mode, ep, tokens_per_rank, op, sms, latency_us, logical_bandwidth_GBps,
/// kernels): the rows of `kernel_set`. Bandwidths count logical_bytes().
[[nodiscard]] std::vector<Observation> published_observations(const CsvTable& table, const Architecture& model,
                                                              const MachineFacts& machine,
                                                              const std::string& kernel_set);

/// How long low-latency kernels hold SMs, issue and receive together (columns ep, tokens_per_rank, op, holds_sms_us).
[[nodiscard]] std::vector<Observation> hold_observations(const CsvTable& table, const Architecture& model,
                                                         const MachineFacts& machine);

/// What the library does with messages inside a node is known, not fitted: in February 2025 they went over the NIC
/// like any other (but for the normal mode's within one node), later over NVLink alone, whose messages keep the NIC
/// waiting. Fills in the constants that follow, where those of the NIC are known.
void set_own_node_constants(const KernelLibrary& library, Constants& constants);

}  // namespace moeline
