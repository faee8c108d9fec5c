// What kernels are part of: the modules of a model by the names that the tree of them has (module_tree.hpp).
//
// A name says its module, then the part of it: "attention/q_b_proj". Matrices are named as checkpoints name them; a
// kernel that multiplies several of them at once stands under their names joined by " + ".
#pragma once

namespace moeline::module_names {

inline constexpr const char* kEmbedding = "embedding";
inline constexpr const char* kNorms = "norms";  ///< of layers and the last one, with the residual adds

inline constexpr const char* kDownProjections = "attention/q_a_proj + kv_a_proj_with_mqa";  ///< of MLA, in one GEMM
inline constexpr const char* kDownQ = "attention/q_a_proj";
inline constexpr const char* kDownKv = "attention/kv_a_proj_with_mqa";
inline constexpr const char* kUpQ = "attention/q_b_proj";
inline constexpr const char* kUpKv = "attention/kv_b_proj";
inline constexpr const char* kQAndDownKv = "attention/q_proj + kv_a_proj_with_mqa";
inline constexpr const char* kQkv = "attention/q_proj + k_proj + v_proj";
inline constexpr const char* kAttentionNorms = "attention/norms";  ///< of latents, queries and keys
inline constexpr const char* kRotary = "attention/rotary";         ///< and what lays out queries, keys and values
inline constexpr const char* kKeyTransfer = "attention/context parallel";
inline constexpr const char* kCore = "attention/core";
inline constexpr const char* kOutput = "attention/o_proj";
inline constexpr const char* kOutputGate = "attention/g_proj";
inline constexpr const char* kCompressor = "attention/compressor";
inline constexpr const char* kOutputDown = "attention/wo_a";  ///< of compressed attention, in groups
inline constexpr const char* kResidualMixing = "residual connections";
inline constexpr const char* kAttentionSum = "attention/tensor parallel";  ///< what ranks that share a module exchange

inline constexpr const char* kStateInput = "linear attention/in_proj";
inline constexpr const char* kStateGates = "linear attention/decays and steps";
inline constexpr const char* kStateConvolution = "linear attention/convolution";
inline constexpr const char* kStateCore = "linear attention/core";
inline constexpr const char* kStateNorm = "linear attention/norm";
inline constexpr const char* kStateOutput = "linear attention/out_proj";

inline constexpr const char* kIndexerQueries = "indexer/wq_b";
inline constexpr const char* kIndexerKeys = "indexer/wk + weights_proj";
inline constexpr const char* kIndexerScores = "indexer/scores";
inline constexpr const char* kIndexerChoice = "indexer/top-k";

inline constexpr const char* kDenseGateUp = "dense FFN/gate_proj + up_proj";
inline constexpr const char* kDenseActivation = "dense FFN/activation";
inline constexpr const char* kDenseDown = "dense FFN/down_proj";
inline constexpr const char* kDenseSum = "dense FFN/tensor parallel";

inline constexpr const char* kRouterGate = "router/gate";
inline constexpr const char* kRouterChoice = "router/top-k";  ///< scores, the choice by them, auxiliary loss

inline constexpr const char* kLatentDown = "latent projections/down";  ///< of tokens for routed experts
inline constexpr const char* kLatentUp = "latent projections/up";

inline constexpr const char* kDispatchInput = "dispatch/cast and layout";
inline constexpr const char* kDispatchBarrier = "dispatch/barrier";
inline constexpr const char* kDispatchTransfer = "dispatch/transfer";
inline constexpr const char* kCombineInput = "combine/cast";
inline constexpr const char* kCombineBarrier = "combine/barrier";
inline constexpr const char* kCombineTransfer = "combine/transfer";

inline constexpr const char* kPermutation = "routed experts/permutation";  ///< tokens to rows of experts, and back
inline constexpr const char* kExpertGateUp = "routed experts/gate_proj + up_proj";
inline constexpr const char* kExpertActivation = "routed experts/activation";
inline constexpr const char* kExpertDown = "routed experts/down_proj";
inline constexpr const char* kExpertLayer = "routed experts/with their transfers";  ///< in one kernel
inline constexpr const char* kExpertSum = "routed experts/tensor parallel";
inline constexpr const char* kExpertBiases = "routed experts/biases";

inline constexpr const char* kSharedGateUp = "shared experts/gate_proj + up_proj";
inline constexpr const char* kSharedActivation = "shared experts/activation";
inline constexpr const char* kSharedDown = "shared experts/down_proj";

inline constexpr const char* kHead = "LM head/projection";
inline constexpr const char* kHeadGather = "LM head/tensor parallel";
inline constexpr const char* kLoss = "LM head/loss";
inline constexpr const char* kSampling = "LM head/sampling";

inline constexpr const char* kMtpProjection = "MTP/projection";

inline constexpr const char* kReduceGradients = "optimizer/reduce-scatter";
inline constexpr const char* kSumRepeated = "optimizer/tensor parallel";
inline constexpr const char* kGradientNorm = "optimizer/gradient norm";
inline constexpr const char* kUpdate = "optimizer/update";
inline constexpr const char* kGatherWeights = "optimizer/all-gather";

inline constexpr const char* kOffloadedActivations = "offload/activations";
inline constexpr const char* kOffloadedStates = "offload/optimizer states";

// Of a measured trace, where it does not say more than the phase of a kernel, or less.
inline constexpr const char* kAttentionPhase = "norms + attention + router";
inline constexpr const char* kMlpPhase = "dense FFN + routed experts + shared experts";
inline constexpr const char* kUnknownModule = "unknown";

inline constexpr const char* kSendActivations = "pipeline/activations";
inline constexpr const char* kSendTokens = "pipeline/new tokens";  ///< of decode, back to the first stage
inline constexpr const char* kMoveCaches = "KV caches";            ///< from one replica to another
inline constexpr const char* kSendGradients = "pipeline/gradients";

}  // namespace moeline::module_names
