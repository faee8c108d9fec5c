// All facts, in the order in which a run measures them.
#pragma once

#include <vector>

#include "bench.hpp"

namespace moeline::bench {

[[nodiscard]] Fact gemm_fp8_fact();
[[nodiscard]] Fact gemm_fp8_masked_fact();
[[nodiscard]] Fact gemm_bf16_fact();
[[nodiscard]] Fact gemm_bf16_grouped_fact();
[[nodiscard]] Fact gemm_bf16_batched_fact();
[[nodiscard]] Fact attention_forward_fact();
[[nodiscard]] Fact attention_backward_fact();
[[nodiscard]] Fact mla_decode_fact();
[[nodiscard]] Fact streaming_fact();
[[nodiscard]] Fact rowwise_fact();
[[nodiscard]] Fact cast_transpose_fact();
[[nodiscard]] Fact swiglu_fact();
[[nodiscard]] Fact strided_fact();
[[nodiscard]] Fact small_fact();
[[nodiscard]] Fact launch_fact();
[[nodiscard]] Fact copy_fact();
[[nodiscard]] Fact contention_fact();

[[nodiscard]] std::vector<Fact> all_facts();

}  // namespace moeline::bench
