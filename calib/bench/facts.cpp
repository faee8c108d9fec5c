#include "facts.hpp"

namespace moeline::bench {

std::vector<Fact> all_facts() {
  return {gemm_fp8_fact(),          gemm_fp8_masked_fact(),   gemm_bf16_fact(),
          gemm_bf16_grouped_fact(), gemm_bf16_batched_fact(), streaming_fact()};
}

}  // namespace moeline::bench
