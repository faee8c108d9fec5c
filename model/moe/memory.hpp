// Memory of one GPU in inference.
#pragma once

#include <vector>

#include "architecture/blocks.hpp"
#include "architecture/parameters.hpp"
#include "moe/dispatcher.hpp"
#include "moe/inference.hpp"

namespace moeline {

/// What runs on each GPU. Routed and redundant experts are spread over `ep` GPUs, and each of them over `moe_tp`;
/// attention, dense layers, embedding and LM head are split over the `tp` GPUs of an attention group, which have the
/// same requests; all else is on every one.
///
/// Of a pipeline one stage: its blocks, and a pass through it. The stage keeps the keys of `caches` times as many
/// requests as a pass has.
struct GpuWork {
  std::vector<Block> stage{};  ///< blocks of the model; empty: all of them
  double caches = 1;
  int ep = 1;
  int tp = 1;
  int cp = 1;                ///< attention groups that share prompts; of each `prefill` is its part
  bool gathers_keys = true;  ///< of these prompts every one has all keys, else its own
  int moe_tp = 1;
  ExpertPadding expert_padding{};
  int redundant_experts = 0;            ///< of each MoE layer, over all GPUs
  int micro_batches = 1;                ///< in flight at once
  Sequences decode;                     ///< of an attention group and step, all micro-batches; kv_len: in the cache
  Sequences prefill;                    ///< the same
  bool mtp = false;                     ///< MTP modules are loaded, and keep a cache of their own
  CommMode mode = CommMode::normal;     ///< how tokens reach experts
  Precision dispatch = Precision::fp8;  ///< that tokens travel in and enter the experts
  int comm_sms = 20;                    ///< of the normal mode; DeepEP's default
  int gpus_per_node = 8;
  ElasticChoices elastic{};  ///< of DeepEP's second version
  double busiest_rank = 1;   ///< its expert rows over the mean

  [[nodiscard]] double tokens() const { return decode.tokens() + prefill.tokens(); }
  /// Tokens whose logits are wanted: of a prompt, the last one.
  [[nodiscard]] double logit_rows() const { return decode.tokens() + std::ceil(prefill.requests); }
};

/// Bytes.
struct Memory {
  double weights = 0;
  double draft_model = 0;  ///< of these, MTP modules'
  double kv_cache = 0;
  double states = 0;  ///< of this, what does not grow with tokens
  double activations = 0;
  double communication = 0;
  [[nodiscard]] double total() const { return weights + kv_cache + activations + communication; }
};

[[nodiscard]] inline double gib(double bytes) { return bytes / (1 << 30); }

/// Weights: as stored (bytes_per_weight). 1/tp of embedding, LM head, dense FFN and attention, but for MLA's
/// projections into latents, which each rank has whole, and for key and value heads, of which it has one at least;
/// shared experts likewise where ranks add up their sums (all_reduce), else whole; norms, router and the MTP projection
/// whole; of routed experts ceil((n_routed_experts + redundant_experts) / ep) / moe_tp per layer, with what they are
/// padded to; MTP likewise.
///
/// KV cache: kv_bytes (BF16) of each request; of GQA the rank's heads, of MLA all; no paging losses.
///
/// Activations: the largest set of tensors alive at once in one layer, nothing saved between layers.
/// - Hidden state and residual of every token, BF16.
/// - In attention: q, k, v and output of the core. MLA expands keys and values of whole prompts, those that are cached
///   too; in decode, and where a prompt's tokens attend to chosen keys, it has q and output in the latent space, and
///   its indexer a score in FP32 for each new token and each key.
/// - In the MLP: input and output of the widest step from received tokens to the sum of the experts' outputs; beside
///   it the shared experts' intermediate tensors. A normal dispatch delivers a token once per rank it goes to (at most
///   min(num_experts_per_tok, ep)), which is then copied into num_experts_per_tok rows, as many as balanced routing
///   gives, each local expert's padded to 128 in the worst case. A low-latency dispatch has a row for each local
///   expert, rank and token, used or not. In the other modes as in a normal one, of the tokens of all ranks. Or the
///   dense FFN's tensors if they are larger.
/// - Of several micro-batches half are in attention while the others are in the MLP.
/// - After the last layer logits, in BF16 and FP32, instead of the layer's tensors, if they are larger.
/// CUDA context, graphs, workspaces of libraries and fragmentation are not in it.
///
/// Communication: the buffers that the mode's library asks for (moe/dispatcher_buffers.hpp). Those of collectives, some
/// MB, are not in it.
[[nodiscard]] Memory memory_per_gpu(const Architecture& model, const GpuWork& work);

/// Layers that keep something of a request, with the GPU's heads; MTP's where `work` has them.
struct CachedLayers {
  std::vector<LayerAttention> layers;
  int parts = 1;  ///< GPUs that each have a part of a prompt's keys
};
[[nodiscard]] CachedLayers cached_layers(const Architecture& model, const GpuWork& work);
/// Cache of one request with so many tokens, on each GPU, bytes: keys and values, of windows and chunks at most so
/// many, and states, which one token has whole.
[[nodiscard]] double cache_of_request(const Architecture& model, const CachedLayers& cached, double tokens);

/// Of the matrices of one routed expert of one MoE layer, what one of `moe_tp` ranks has, with their scales.
[[nodiscard]] double routed_expert_bytes(const Architecture& model, int moe_tp);

/// Of a module's matrices, what one of `tp` ranks has: 1/tp of attention but for MLA's projections into latents, and of
/// key and value heads one at least; of dense and shared feed-forward networks, embedding and LM head. All of the rest.
[[nodiscard]] double tensor_parallel_share(const Module& module, const Architecture& model, int tp);

}  // namespace moeline
