#include "moe/operator.hpp"

#include <array>

namespace moeline {

const std::string& name_of(Family family) {
  static const std::array<std::string, kFamilies> kNames = {"gemm_fp8",
                                                            "gemm_fp8_wgrad",
                                                            "gemm_fp8_grouped",
                                                            "gemm_bf16",
                                                            "attention_forward",
                                                            "attention_backward",
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
                                                            "dispatch",
                                                            "dispatch_cached",
                                                            "combine"};
  return kNames[static_cast<std::size_t>(family)];
}

}  // namespace moeline
