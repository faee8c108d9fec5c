// One kernel of the model, as shapes, FLOPs and bytes: what it does, not yet how long it takes.
#pragma once

#include <string>
#include <vector>

namespace moeline {

/// Kernels that one cost curve describes. The memory-bound ones are told apart by how they walk through memory.
enum class Family {
  gemm_fp8,           ///< dense, persistent; 1x128 activation scales, 128x128 weight scales
  gemm_fp8_wgrad,     ///< dense, persistent, accumulates into FP32
  gemm_fp8_grouped,   ///< contiguous grouped layout: rows of all local experts, each padded to 128
  gemm_bf16,          ///< router
  attention_forward,  ///< FlashAttention, BF16, causal
  attention_backward,
  streaming,        ///< element-wise, copies, transposes, permutation of rows, attention's pre- and postprocessing
  rowwise,          ///< one block per row with a reduction over it: casts to and from FP8, RMSNorm
  cast_transpose,   ///< per-channel FP8 cast with transpose
  requantize,       ///< per-token FP8 to per-channel FP8, transposed
  swiglu,           ///< SwiGLU forward and backward, fused with casts
  recode_12bit,     ///< BF16 to and from the 12-bit E5M6 format of saved attention outputs
  strided,          ///< touches a part of each row: rotary embedding, broadcasts over heads, transposed scales
  routing_scan,     ///< scans tokens x experts: top-k, dispatch layout
  count_rows,       ///< tokens per local expert; one block per expert
  map_rows,         ///< row of each token and expert; one block per expert
  small,            ///< a few microseconds whatever the size: the rest of the router, scale transposes, fills
  notify,           ///< barrier of all ranks and exchange of counts before a transfer
  dispatch,         ///< all-to-all of FP8 tokens to their experts
  dispatch_cached,  ///< the same with a layout known from the forward pass
  combine,          ///< all-to-all of BF16 results back
};
inline constexpr int kFamilies = static_cast<int>(Family::combine) + 1;

[[nodiscard]] const std::string& name_of(Family family);

/// Bytes and copies of one rank's part in an all-to-all.
struct Traffic {
  int ranks = 0;            ///< that take part
  double rdma_bytes = 0;    ///< to every destination node, the own one included (what DeepEP's bandwidths count)
  double wire_bytes = 0;    ///< of these, over the NIC: to other nodes, each way
  double nvlink_bytes = 0;  ///< within the node, each way
  double copied_bytes = 0;  ///< through the SMs: RDMA and NVLink copies, own rank included
};

struct Operator {
  std::string name;
  Family family = Family::small;
  double m = 0, n = 0, k = 0;  ///< of GEMMs; m counts the padded rows of all groups
  double flops = 0;
  double bytes = 0;             ///< least memory traffic: every tensor once
  double items = 0;             ///< what routing kernels go through: tokens x experts, or rows
  int blocks = 0;               ///< thread blocks where they are fewer than the SMs; 0: more than enough
  double recomputed_flops = 0;  ///< of `flops`: forward work repeated in the backward pass
  bool parallel = false;        ///< independent of its neighbours: may run on a second stream beside them
  Traffic traffic;
};

[[nodiscard]] inline bool is_all_to_all(Family family) { return family >= Family::dispatch; }
[[nodiscard]] inline bool is_gemm(Family family) { return family <= Family::gemm_bf16; }
/// Thread blocks that stay until the kernel is over: SMs are held, and priced by their number.
[[nodiscard]] inline bool is_resident(Family family) {
  return family <= Family::gemm_fp8_grouped || family >= Family::notify;
}

}  // namespace moeline
