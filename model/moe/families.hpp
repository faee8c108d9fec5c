// By which sizes the measurements of a kernel are told from each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/precision.hpp"

namespace moeline {

/// What a kernel is told apart by from others of its family.
enum class Dimension {
  m,  ///< rows of a GEMM: of each group in the masked layout, else of all groups
  n,
  k,
  groups,  ///< GEMMs in one kernel
  batch,   ///< sequences
  kv_heads,
  heads_per_kv,  ///< query heads that share keys
  rows,          ///< query rows that do: of a decode, heads_per_kv x query_len
  query_len,
  kv_len,
  cached,  ///< of a prefill, keys before the first query
  window,  ///< sliding; 0: none
  qk_dim,
  v_dim,
  bytes,  ///< of memory traffic; of a transfer those that go through SMs, of a collective its message
  items,  ///< token-expert pairs, or rows
  ranks,
  tokens,  ///< that a rank sends
  hidden,  ///< numbers of a token
  top_k,
  experts,  ///< of all ranks
  sms       ///< that it is launched on
};
inline constexpr int kDimensions = static_cast<int>(Dimension::sms) + 1;

[[nodiscard]] const std::string& name_of(Dimension dimension);
/// As they stand in a profile.
[[nodiscard]] const std::vector<std::string>& dimension_names();

// The families of kernels, and the table of what is true of each.

/// Kernels that one cost curve describes. The memory-bound ones are told apart by how they walk through memory.
enum class Family {
  gemm_fp8,           ///< dense, persistent; 1x128 activation scales, 128x128 weight scales
  gemm_fp8_wgrad,     ///< dense, persistent, accumulates into FP32
  gemm_fp8_grouped,   ///< contiguous grouped layout: rows of all local experts, each padded to 128
  gemm_fp8_masked,    ///< masked grouped layout: each local expert has a buffer and a count of valid rows
  gemm_fp8_tensor,    ///< dense, one scale per tensor, or per row of it
  gemm_nvfp4,         ///< dense, FP4 tensor cores
  gemm_bf16,          ///< dense
  gemm_bf16_grouped,  ///< one GEMM per local expert
  gemm_bf16_batched,  ///< one GEMM per head: MLA's absorbed projections
  attention_forward,  ///< FlashAttention, BF16, causal
  attention_backward,
  mla_decode,            ///< core of absorbed MLA: all heads share one latent key and value
  gqa_decode,            ///< core of grouped-query attention over a KV cache
  sparse_attention,      ///< core over keys that were chosen, gathered from the cache
  index_scores,          ///< products of an indexer's heads with all keys
  state_scan,            ///< prompts through a state, chunk by chunk: gated delta nets, Mamba-2
  state_update,          ///< the same of single tokens
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
  all_reduce,            ///< partial sums of ranks that share a layer: everyone gets the sum
  all_to_all,            ///< NCCL's: each rank's part to every other
  to_host,               ///< a copy to the host's memory by a copy engine: no SMs
  from_host,             ///< and back
  nvlink_prepare,        ///< TensorRT-LLM's all-to-all of an NVLink domain: who gets which token
  nvlink_dispatch,       ///< tokens to the ranks of their experts
  nvlink_combine,        ///< and their results back
  dispatch,              ///< all-to-all of tokens, FP8 or BF16, to their experts
  dispatch_cached,       ///< the same with a layout known from the forward pass
  combine,               ///< all-to-all of BF16 results back
  low_latency_dispatch,  ///< one message per token and expert, straight to its rank
  low_latency_combine,
};
inline constexpr int kFamilies = static_cast<int>(Family::low_latency_combine) + 1;

/// What a family is priced by; communication stands last, from the barrier on.
enum class FamilyKind {
  gemm,
  attention,
  memory_bound,
  routing,      ///< by tokens x experts, or rows
  small,        ///< a fixed cost
  barrier,      ///< by the network's latency
  host_copy,    ///< by the link to the host
  collective,   ///< NCCL's and the stacks' own, and TensorRT-LLM's all-to-all
  normal,       ///< DeepEP's all-to-all with SMs of its own
  low_latency,  ///< and the one whose wire holds none
};

/// One row for each family, in the order of the enumeration.
struct FamilyRow {
  Family family;
  std::string name;
  FamilyKind kind;
  std::string task_class;             ///< what it counts as in metrics: attention is the core alone
  Precision precision;                ///< of the tensor cores that it runs on; bf16 where it runs on none
  bool is_resident;                   ///< thread blocks that stay until the kernel is over: SMs are held
  std::vector<Dimension> dimensions;  ///< that its measurements are told by, SMs apart
};
[[nodiscard]] const FamilyRow& row_of(Family family);

[[nodiscard]] const std::string& name_of(Family family);
/// None where no family has that name.
[[nodiscard]] std::optional<Family> family_named(const std::string& name);

[[nodiscard]] bool is_gemm(Family family);
[[nodiscard]] bool is_attention(Family family);
[[nodiscard]] bool is_memory_bound(Family family);
[[nodiscard]] bool is_all_to_all(Family family);  ///< DeepEP's, notify excluded
[[nodiscard]] bool is_low_latency(Family family);
[[nodiscard]] bool is_collective(Family family);
[[nodiscard]] bool is_host_copy(Family family);
/// Dispatch, combine and their barriers, sends and collectives.
[[nodiscard]] bool is_communication(Family family);

/// How the rows of a GEMM lie.
enum class GemmLayout {
  dense,
  contiguous,  ///< rows of all experts one after the other, each padded to whole tiles
  masked,      ///< a buffer for each expert
};
/// The family of a GEMM whose weights have this format; formats without tensor cores of their own go by BF16.
[[nodiscard]] Family gemm_family(GemmLayout layout, Precision weights);

}  // namespace moeline
