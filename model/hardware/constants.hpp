// The constants of a kernel set. Every cost curve is linear in them: time = sum of constant x feature, the features
// computed from shapes and machine facts (hardware/curve.hpp). A "roofline multiple" is time divided by the time at
// the machine's peak: 1.5 means two thirds of the peak.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace moeline {

enum class Constant : std::size_t {
  gemm_mainloop,  ///< roofline multiple of the FP8 tensor cores, per k-block of a wave
  gemm_epilogue,  ///< us per wave
  wgrad_mainloop,
  wgrad_epilogue,  ///< us per wave; reads and writes the FP32 accumulator
  grouped_mainloop,
  grouped_epilogue,
  gemm_bf16,  ///< roofline multiple of the BF16 tensor cores
  attention_forward,
  attention_backward,
  memory_startup,  ///< us of every memory-bound kernel
  streaming,       ///< roofline multiples of HBM
  rowwise,
  cast_transpose,
  requantize,
  swiglu,
  recode_12bit,
  strided,
  routing_scan,  ///< ns per thousand token-expert pairs
  count_rows,    ///< ns per received token
  map_rows,
  small,                ///< us
  kernel_gap,           ///< us between two kernels of a stream
  read_counts,          ///< us from the end of notify_dispatch until the host has launched dispatch
  host_launch,          ///< us from the end of notify_dispatch until the host has launched mlp(W)
  dispatch_overlapped,  ///< roofline multiples of the NIC, beside compute kernels
  dispatch_cached_overlapped,
  combine_overlapped,
  all_to_all_alone,  ///< the same with nothing beside it
  dispatch_copy,     ///< us for one SM to copy a MB
  combine_copy,
};
inline constexpr std::size_t kConstants = static_cast<std::size_t>(Constant::combine_copy) + 1;

using Constants = std::array<double, kConstants>;

/// Names as they stand in a profile.
inline constexpr std::array<std::string_view, kConstants> kConstantNames = {
    "gemm_fp8.mainloop_roofline_multiple",
    "gemm_fp8.epilogue_us",
    "gemm_fp8_wgrad.mainloop_roofline_multiple",
    "gemm_fp8_wgrad.epilogue_us",
    "gemm_fp8_grouped.mainloop_roofline_multiple",
    "gemm_fp8_grouped.epilogue_us",
    "gemm_bf16.roofline_multiple",
    "attention_forward.roofline_multiple",
    "attention_backward.roofline_multiple",
    "memory.startup_us",
    "streaming.roofline_multiple",
    "rowwise.roofline_multiple",
    "cast_transpose.roofline_multiple",
    "requantize.roofline_multiple",
    "swiglu.roofline_multiple",
    "recode_12bit.roofline_multiple",
    "strided.roofline_multiple",
    "routing_scan.ns_per_1000_items",
    "count_rows.ns_per_row",
    "map_rows.ns_per_row",
    "small.us",
    "launch.kernel_gap_us",
    "launch.read_counts_us",
    "launch.host_us",
    "dispatch.overlapped_roofline_multiple",
    "dispatch_cached.overlapped_roofline_multiple",
    "combine.overlapped_roofline_multiple",
    "all_to_all.alone_roofline_multiple",
    "dispatch.sm_us_per_MB",
    "combine.sm_us_per_MB",
};

}  // namespace moeline
