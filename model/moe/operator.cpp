#include "moe/operator.hpp"

#include <array>

namespace moeline {

const std::string& name_of(Family family) {
  static const std::array<std::string, kFamilies> kNames = {"gemm_fp8",
                                                            "gemm_fp8_wgrad",
                                                            "gemm_fp8_grouped",
                                                            "gemm_fp8_masked",
                                                            "gemm_bf16",
                                                            "gemm_bf16_grouped",
                                                            "gemm_bf16_batched",
                                                            "attention_forward",
                                                            "attention_backward",
                                                            "mla_decode",
                                                            "gqa_decode",
                                                            "streaming",
                                                            "rowwise",
                                                            "cast_transpose",
                                                            "requantize",
                                                            "swiglu",
                                                            "recode_12bit",
                                                            "strided",
                                                            "routing_scan",
                                                            "count_rows",
                                                            "map_rows",
                                                            "small",
                                                            "notify",
                                                            "send",
                                                            "reduce_scatter",
                                                            "all_gather",
                                                            "dispatch",
                                                            "dispatch_cached",
                                                            "combine",
                                                            "low_latency_dispatch",
                                                            "low_latency_combine"};
  return kNames[static_cast<std::size_t>(family)];
}

std::optional<Family> family_named(const std::string& name) {
  for (int i = 0; i < kFamilies; ++i) {
    if (name_of(static_cast<Family>(i)) == name) return static_cast<Family>(i);
  }
  return std::nullopt;
}

bool is_gemm(Family family) { return family <= Family::gemm_bf16_batched; }
bool is_attention(Family family) { return family >= Family::attention_forward && family <= Family::gqa_decode; }
bool is_memory_bound(Family family) { return family >= Family::streaming && family <= Family::strided; }

bool is_all_to_all(Family family) { return family >= Family::dispatch; }

bool is_low_latency(Family family) { return family >= Family::low_latency_dispatch; }

bool is_collective(Family family) { return family >= Family::send && family <= Family::all_gather; }

bool is_communication(Family family) { return family >= Family::notify; }

bool is_fp8(Family family) { return family <= Family::gemm_fp8_masked; }

bool is_resident(Family family) {
  // the blocks of low-latency kernels come and go on the compute stream
  return is_fp8(family) || (is_communication(family) && !is_low_latency(family) && !is_collective(family));
}

}  // namespace moeline
