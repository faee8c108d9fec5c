// One kernel of the model, as shapes, FLOPs and bytes: what it does, not yet how long it takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moeline {

/// Kernels that one cost curve describes. The memory-bound ones are told apart by how they walk through memory.
/// Order matters: operator.cpp tells GEMMs, FP8 and transfers by ranges.
enum class Family {
  gemm_fp8,           ///< dense, persistent; 1x128 activation scales, 128x128 weight scales
  gemm_fp8_wgrad,     ///< dense, persistent, accumulates into FP32
  gemm_fp8_grouped,   ///< contiguous grouped layout: rows of all local experts, each padded to 128
  gemm_fp8_masked,    ///< masked grouped layout: each local expert has a buffer and a count of valid rows
  gemm_bf16,          ///< dense
  gemm_bf16_grouped,  ///< one GEMM per local expert
  gemm_bf16_batched,  ///< one GEMM per head: MLA's absorbed projections
  attention_forward,  ///< FlashAttention, BF16, causal
  attention_backward,
  mla_decode,            ///< core of absorbed MLA: all heads share one latent key and value
  gqa_decode,            ///< core of grouped-query attention over a KV cache
  streaming,             ///< element-wise, copies, transposes, permutation of rows, attention's pre- and postprocessing
  rowwise,               ///< one block per row with a reduction over it: casts to and from FP8, RMSNorm
  cast_transpose,        ///< per-channel FP8 cast with transpose
  requantize,            ///< per-token FP8 to per-channel FP8, transposed
  swiglu,                ///< SwiGLU forward and backward, fused with casts
  recode_12bit,          ///< BF16 to and from the 12-bit E5M6 format of saved attention outputs
  strided,               ///< touches a part of each row: rotary embedding, broadcasts over heads, transposed scales
  routing_scan,          ///< scans tokens x experts: top-k, dispatch layout
  count_rows,            ///< tokens per local expert; one block per expert
  map_rows,              ///< row of each token and expert; one block per expert
  small,                 ///< a few microseconds whatever the size: the rest of the router, scale transposes, fills
  notify,                ///< barrier of all ranks and exchange of counts before a transfer
  send,                  ///< one rank's message to another: activations of a pipeline
  reduce_scatter,        ///< gradients summed over their replicas, each of which keeps a part
  all_gather,            ///< parts of updated parameters to all replicas
  dispatch,              ///< all-to-all of tokens, FP8 or BF16, to their experts
  dispatch_cached,       ///< the same with a layout known from the forward pass
  combine,               ///< all-to-all of BF16 results back
  low_latency_dispatch,  ///< one message per token and expert, straight to its rank
  low_latency_combine,
};
inline constexpr int kFamilies = static_cast<int>(Family::low_latency_combine) + 1;

[[nodiscard]] const std::string& name_of(Family family);
/// None where no family has that name.
[[nodiscard]] std::optional<Family> family_named(const std::string& name);

/// Why a kernel is there. Training may be set up to do without the last two (moe/training_choices.hpp).
enum class Purpose {
  necessary,
  recompute,  ///< forward work repeated in the backward pass instead of kept
  storage,    ///< saves or restores an activation in fewer bits than BF16
};

/// Which part of a low-latency transfer: kernels on the compute stream send and receive, the wire holds no SM.
enum class Stage { whole, issue, wire, receive };

/// Bytes and copies of one rank's part in an all-to-all.
struct Traffic {
  int ranks = 0;               ///< that take part; of collectives all GPUs between the first and the last of them
  double neighbour_nodes = 0;  ///< of collectives: nodes from a rank to the one that it sends to; 0: in its own
  double rdma_bytes = 0;       ///< to every destination node, the own one included (what DeepEP's bandwidths count)
  double wire_bytes = 0;       ///< of these, over the NIC: to other nodes, each way
  double nvlink_bytes = 0;     ///< within the node, each way
  double copied_bytes = 0;     ///< through the SMs: RDMA and NVLink copies, own rank included
  double tokens = 0;           ///< that the rank sends
  double record_bytes = 0;     ///< of one copy of a token
  double payload_bytes = 0;    ///< of these, its numbers and their scales
  bool unequal = false;        ///< ranks get different amounts; bytes are those of the busiest
  Stage stage = Stage::whole;
};

/// One attention kernel: `batch` sequences, each with `query_len` queries that see up to `kv_len` keys.
struct AttentionShape {
  double batch = 0;
  double heads = 0;
  double kv_heads = 0;  ///< 1 for absorbed MLA
  double query_len = 0;
  double kv_len = 0;  ///< keys of the last query: cached ones and its own; at most the sliding window
  double qk_dim = 0;  ///< per head
  double v_dim = 0;
  double window = 0;  ///< sliding window that some query of a prefill does not see past; 0: none
};

struct Operator {
  std::string name;
  Family family = Family::small;
  double m = 0, n = 0, k = 0;     ///< of GEMMs; m counts the rows of all groups, padded where the layout pads
  double groups = 1;              ///< GEMMs in one kernel: local experts, or heads
  std::vector<int> group_rows{};  ///< rows of each group where they differ
  double expected_rows = 0;       ///< of a group, that the kernel's tile is chosen for, where they differ
  double flops = 0;
  double bytes = 0;             ///< least memory traffic: every tensor once
  double items = 0;             ///< what routing kernels go through: tokens x experts, or rows
  int blocks = 0;               ///< thread blocks where they are fewer than the SMs; 0: more than enough
  double recomputed_flops = 0;  ///< of `flops`: forward work repeated in the backward pass
  Purpose purpose = Purpose::necessary;
  bool parallel = false;  ///< independent of its neighbours: may run on a second stream beside them
  AttentionShape attention;
  Traffic traffic;
};

[[nodiscard]] bool is_gemm(Family family);
[[nodiscard]] bool is_attention(Family family);
[[nodiscard]] bool is_memory_bound(Family family);
[[nodiscard]] bool is_all_to_all(Family family);  ///< notify excluded
[[nodiscard]] bool is_low_latency(Family family);
/// NCCL's: between stages of a pipeline, or replicas of parameters.
[[nodiscard]] bool is_collective(Family family);
/// Dispatch, combine and their barriers, sends and collectives.
[[nodiscard]] bool is_communication(Family family);
/// Runs on the FP8 tensor cores.
[[nodiscard]] bool is_fp8(Family family);
/// Thread blocks that stay until the kernel is over: SMs are held, and priced by their number.
[[nodiscard]] bool is_resident(Family family);

}  // namespace moeline
