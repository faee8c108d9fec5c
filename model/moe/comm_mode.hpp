// How tokens reach the ranks of their experts, and how results come back: the words. What each one does stands in
// moe/dispatcher.hpp.
#pragma once

namespace moeline {

enum class CommMode {
  normal,       ///< DeepEP's all-to-all that holds SMs of its own
  low_latency,  ///< and the one whose wire holds none
  nvlink,       ///< TensorRT-LLM's all-to-all inside an NVLink domain
  all_gather,   ///< every rank gets the tokens of all, and its part of the sums back by reduce-scatter
  all_reduce,   ///< all ranks have the same tokens: partial sums are added up
  none,         ///< one rank has all experts, and all of each
  all_to_all,   ///< NCCL's: each token once for each of its experts, behind counts that the host reads
  fused,        ///< inside the experts' kernel, over NVLink (DeepGEMM's MegaMoE)
  hybrid_ep,    ///< Megatron's, each token once to each of its NVLink domains, and there to each of its ranks
  deepep_v2,    ///< DeepEP's second version, for every phase: few SMs, and epilogues on all of them
  pplx,         ///< Perplexity's: messages as those of the low-latency mode, which the host's proxy sends
};
inline constexpr int kCommModes = static_cast<int>(CommMode::pplx) + 1;

/// By which way DeepEP's second version sends a token to a rank on another node.
enum class Topology {
  direct,  ///< once to each rank that has its experts
  hybrid,  ///< once to each node, to the GPU of the same index, and from there over NVLink
};

/// As what it hands tokens over.
enum class RowLayout {
  contiguous,  ///< each once, in the order in which they came
  expanded,    ///< a row for each of its experts here, sorted by expert
};

/// What a scenario asks of it.
struct ElasticChoices {
  Topology topology = Topology::hybrid;
  RowLayout layout = RowLayout::contiguous;
  bool cpu_sync = false;  ///< the host waits for the counts of what each rank gets; else buffers are of the worst case
};

/// How the keys and values of a prompt reach the ranks that share its tokens.
enum class ContextMode {
  all_gather,  ///< those of all tokens before attention begins (as vLLM and SGLang prefill)
  ring,  ///< block by block from neighbour to neighbour, beside the attention to the block before (arXiv 2310.01889)
  copy_engines,  ///< gathered as well, without SMs, by DeepEP's second version
};

/// By what activations and gradients go from one stage of a pipeline to the next.
enum class StageSends {
  nccl,  ///< kernels of NCCL, on SMs of its channels
  rdma,  ///< the NIC alone, without SMs, by DeepEP's second version
};

}  // namespace moeline
