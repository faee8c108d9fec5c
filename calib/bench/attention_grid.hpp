// Which cases the attention kernels are measured at: plain data, as grid.hpp.
#pragma once

#include <vector>

#include "case.hpp"

namespace moeline::bench {

/// Causal, BF16: MLA's prefill (a key and value head for every query head, 192 and 128 wide), grouped queries (64 heads
/// on 8, 128 wide), whole sequences and chunks after a past.
[[nodiscard]] std::vector<Case> attention_forward_cases(Preset preset);
/// Whole sequences.
[[nodiscard]] std::vector<Case> attention_backward_cases(Preset preset);
/// Heads of one rank, and one or two queries as in speculative decoding.
[[nodiscard]] std::vector<Case> mla_decode_cases(Preset preset);

/// One of each that fills the device, for `contention`.
[[nodiscard]] Case typical_attention_forward();
[[nodiscard]] Case typical_mla_decode();

}  // namespace moeline::bench
