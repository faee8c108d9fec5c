#include "facts.hpp"

namespace moeline::bench {

std::vector<Fact> all_facts() {
  return {
      gemm_fp8_fact(),
      gemm_fp8_masked_fact(),
      gemm_bf16_fact(),
      gemm_bf16_grouped_fact(),
      gemm_bf16_batched_fact(),
      attention_forward_fact(),
      attention_backward_fact(),
      mla_decode_fact(),
      streaming_fact(),
      rowwise_fact(),
      cast_transpose_fact(),
      swiglu_fact(),
      strided_fact(),
      small_fact(),
      launch_fact(),
      copy_fact(),
      contention_fact(),
  };
}

}  // namespace moeline::bench
