// Valid scenarios of prefill and decode, each key on a line that is known.
#pragma once

#include <string>

namespace moeline::testing {

inline const std::string kHead =
    "schema: 1\n"                  // 1
    "model: deepseek-v3\n"         // 2
    "hardware: h800\n"             // 3
    "kernels: deepseek-2025-02\n"  // 4
    "layers: 4\n";                 // 5

inline const std::string kDecode =
    kHead +
    "schedule: decode-two-batch\n"                                                    // 6
    "parallelism: {tp: 1, pp: 1, ep: 128, dp: 128}\n"                                 // 7
    "workload: {phase: decode, batch_size: 128, kv_len: 4096, kv_len_spread: 100,\n"  // 8
    "           query_len: 2, mtp_acceptance: 0.8}\n"                                 // 9
    "comm: {mode: low_latency}\n"                                                     // 10
    "routing: {distribution: balanced, redundant_experts: 0, placement: static}\n"    // 11
    "overlap: default\n"                                                              // 12
    "launch: graph\n";                                                                // 13

inline const std::string kPrefill = kHead +
                                    "schedule: prefill-two-batch\n"                              // 6
                                    "parallelism: {tp: 1, pp: 1, ep: 32, dp: 32}\n"              // 7
                                    "workload: {phase: prefill, tokens: 16384,\n"                // 8
                                    "           prompt_len: 4096, cached_len: 0}\n"              // 9
                                    "comm: {mode: normal, num_sms: 24}\n"                        // 10
                                    "routing: {distribution: balanced, redundant_experts: 0}\n"  // 11
                                    "overlap: default\n";                                        // 12

}  // namespace moeline::testing
