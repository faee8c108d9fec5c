// The constants of a kernel set. Every cost curve is linear in them: time = sum of constant x feature, the features
// computed from shapes and machine facts (curves/curve.hpp). A "roofline multiple" is time divided by the time at
// the machine's peak: 1.5 means two thirds of the peak.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <limits>
#include <string_view>

namespace moeline {

enum class Constant : std::size_t {
  gemm_startup,       ///< us of every FP8 GEMM
  gemm_mainloop,      ///< roofline multiple of the FP8 tensor cores, the latency of a k-block included
  gemm_epilogue,      ///< us to store a tile of 128x128
  gemm_ports,         ///< roofline multiples of the SMs' L2 ports
  gemm_memory,        ///< and of HBM
  bf16_gemm_startup,  ///< of BF16 GEMMs the same
  bf16_gemm_mainloop,
  bf16_gemm_epilogue,
  bf16_gemm_ports,
  bf16_gemm_memory,
  wgrad_mainloop,
  wgrad_epilogue,     ///< us per wave; reads and writes the FP32 accumulator
  attention_forward,  ///< roofline multiples of the BF16 tensor cores
  attention_latency,  ///< us; a prefill's least time. 0 by a device's clock: it is the host's
  attention_backward,
  mla_compute,     ///< roofline multiple of the BF16 tensor cores, per whole tile of query rows
  mla_memory,      ///< roofline multiple of HBM, per byte of the cache
  mla_startup,     ///< us
  mla_merge,       ///< us for each time the parts a sequence is split into double
  mla_queries,     ///< roofline multiple of HBM, per byte of queries and outputs
  gqa_startup,     ///< us
  gqa_merge,       ///< us for one SM to merge a row whose keys were split
  gqa_compute,     ///< roofline multiple of the BF16 tensor cores, per whole tile of query rows
  gqa_memory,      ///< roofline multiple of HBM
  gqa_latency,     ///< us; a decode's least time besides its start-up
  memory_startup,  ///< us of every memory-bound kernel
  streaming,       ///< roofline multiples of HBM
  rowwise,
  tiled,  ///< SwiGLU, and casts with a transpose: tiles are read, worked on, and written
  requantize,
  recode_12bit,
  strided,
  routing_scan,  ///< ns per thousand token-expert pairs
  count_rows,    ///< ns per received token
  map_rows,
  small,             ///< us
  kernel_gap,        ///< us between two kernels of a stream
  host_per_kernel,   ///< us of the host to launch one kernel of an eager program
  graph_gap,         ///< us between two kernels of a CUDA graph
  read_counts,       ///< us from the end of notify_dispatch until the host has launched dispatch
  host_launch,       ///< us from the end of notify_dispatch until the host has launched mlp(W)
  jitter,            ///< standard deviation of a kernel's time over its mean, from one execution to the next
  speed_spread,      ///< of the GPUs' speeds over their mean, in what goes by the SMs' clock
  dispatch_stretch,  ///< time of its copies beside compute kernels over their time alone
  dispatch_cached_stretch,
  combine_stretch,
  all_to_all_hop,   ///< us for a KB of one token's record: to start, and again for each link that fills
  dispatch_copy,    ///< us for one SM to copy a MB
  combine_copy,     ///< the same where it adds up on the way
  normal_nic,       ///< roofline multiples of the links, normal mode
  normal_own_node,  ///< of the NIC, for what stays in the node: 0 where the library keeps it off the NIC
  normal_nvlink,
  low_latency_startup,  ///< us of every low-latency transfer
  low_latency_reach,    ///< us more, times the share of its messages that leave the node
  low_latency_nic,      ///< roofline multiples, as in normal mode
  low_latency_own_node,
  low_latency_waits,          ///< roofline multiple of NVLink: for how long its messages keep the NIC waiting
  low_latency_node_dispatch,  ///< us of a dispatch that the wait for other nodes would hide: it casts and counts
  low_latency_nvlink,
  low_latency_hold,       ///< us that issue and receive together hold SMs
  low_latency_hold_copy,  ///< the same, per MB
};
inline constexpr std::size_t kConstants = static_cast<std::size_t>(Constant::low_latency_hold_copy) + 1;

/// By Constant; NaN where a kernel set does not know it.
using Constants = std::array<double, kConstants>;
using ConstantSet = std::bitset<kConstants>;
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// One row for each, in the order of the enumeration: its name in a profile.
struct ConstantRow {
  Constant constant;
  std::string_view name;
};
inline constexpr std::array<ConstantRow, kConstants> kConstantTable = {{
    {Constant::gemm_startup, "gemm_fp8.startup_us"},
    {Constant::gemm_mainloop, "gemm_fp8.mainloop_roofline_multiple"},
    {Constant::gemm_epilogue, "gemm_fp8.epilogue_us"},
    {Constant::gemm_ports, "gemm_fp8.port_roofline_multiple"},
    {Constant::gemm_memory, "gemm_fp8.memory_roofline_multiple"},
    {Constant::bf16_gemm_startup, "gemm_bf16.startup_us"},
    {Constant::bf16_gemm_mainloop, "gemm_bf16.mainloop_roofline_multiple"},
    {Constant::bf16_gemm_epilogue, "gemm_bf16.epilogue_us"},
    {Constant::bf16_gemm_ports, "gemm_bf16.port_roofline_multiple"},
    {Constant::bf16_gemm_memory, "gemm_bf16.memory_roofline_multiple"},
    {Constant::wgrad_mainloop, "gemm_fp8_wgrad.mainloop_roofline_multiple"},
    {Constant::wgrad_epilogue, "gemm_fp8_wgrad.epilogue_us"},
    {Constant::attention_forward, "attention_forward.roofline_multiple"},
    {Constant::attention_latency, "attention_forward.latency_us"},
    {Constant::attention_backward, "attention_backward.roofline_multiple"},
    {Constant::mla_compute, "mla_decode.compute_roofline_multiple"},
    {Constant::mla_memory, "mla_decode_cache.roofline_multiple"},
    {Constant::mla_startup, "mla_decode_overhead.startup_us"},
    {Constant::mla_merge, "mla_decode_overhead.merge_us"},
    {Constant::mla_queries, "mla_decode_overhead.queries_roofline_multiple"},
    {Constant::gqa_startup, "gqa_decode.startup_us"},
    {Constant::gqa_merge, "gqa_decode.merge_us_per_row"},
    {Constant::gqa_compute, "gqa_decode.compute_roofline_multiple"},
    {Constant::gqa_memory, "gqa_decode.memory_roofline_multiple"},
    {Constant::gqa_latency, "gqa_decode.latency_us"},
    {Constant::memory_startup, "memory.startup_us"},
    {Constant::streaming, "streaming.roofline_multiple"},
    {Constant::rowwise, "rowwise.roofline_multiple"},
    {Constant::tiled, "tiled.roofline_multiple"},
    {Constant::requantize, "requantize.roofline_multiple"},
    {Constant::recode_12bit, "recode_12bit.roofline_multiple"},
    {Constant::strided, "strided.roofline_multiple"},
    {Constant::routing_scan, "routing_scan.ns_per_1000_items"},
    {Constant::count_rows, "count_rows.ns_per_row"},
    {Constant::map_rows, "map_rows.ns_per_row"},
    {Constant::small, "small.us"},
    {Constant::kernel_gap, "launch.kernel_gap_us"},
    {Constant::host_per_kernel, "launch.host_per_kernel_us"},
    {Constant::graph_gap, "launch_graph.kernel_gap_us"},
    {Constant::read_counts, "host_sync.read_counts_us"},
    {Constant::host_launch, "host_sync.launch_us"},
    {Constant::jitter, "jitter.relative_deviation"},
    {Constant::speed_spread, "speed.relative_deviation"},
    {Constant::dispatch_stretch, "dispatch.copy_stretch"},
    {Constant::dispatch_cached_stretch, "dispatch_cached.copy_stretch"},
    {Constant::combine_stretch, "combine.copy_stretch"},
    {Constant::all_to_all_hop, "all_to_all_hop.us_per_KB"},
    {Constant::dispatch_copy, "sm_copies.dispatch_us_per_MB"},
    {Constant::combine_copy, "sm_copies.combine_us_per_MB"},
    {Constant::normal_nic, "all_to_all.nic_roofline_multiple"},
    {Constant::normal_own_node, "all_to_all.own_node_roofline_multiple"},
    {Constant::normal_nvlink, "all_to_all_nvlink.roofline_multiple"},
    {Constant::low_latency_startup, "low_latency.startup_us"},
    {Constant::low_latency_reach, "low_latency.reach_us"},
    {Constant::low_latency_nic, "low_latency.nic_roofline_multiple"},
    {Constant::low_latency_own_node, "low_latency.own_node_roofline_multiple"},
    {Constant::low_latency_waits, "low_latency.waits_roofline_multiple"},
    {Constant::low_latency_node_dispatch, "low_latency_nvlink.dispatch_us"},
    {Constant::low_latency_nvlink, "low_latency_nvlink.roofline_multiple"},
    {Constant::low_latency_hold, "low_latency_hold.fixed_us"},
    {Constant::low_latency_hold_copy, "low_latency_hold.us_per_MB"},
}};

[[nodiscard]] constexpr std::string_view constant_name(std::size_t constant) { return kConstantTable[constant].name; }

[[nodiscard]] constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (static_cast<std::size_t>(kConstantTable[i].constant) != i) return false;
  }
  return true;
}
static_assert(is_in_order());

/// Constants are known together, and borrowed together, by the part of their name before the dot.
[[nodiscard]] constexpr std::string_view group_of(std::size_t constant) {
  const std::string_view name = constant_name(constant);
  return name.substr(0, name.find('.'));
}

}  // namespace moeline
