#include "schedules/scenario/stack_habits.hpp"

#include <algorithm>

#include "curves/deep_ep_v2.hpp"
#include "curves/form.hpp"
#include "curves/hybrid_ep.hpp"
#include "moe/small_kernels.hpp"
#include "schedules/scenario/read_scenario.hpp"

namespace moeline::habits {
namespace {

bool is_blackwell(const Setup& setup) { return setup.machine.facts.generation() == Generation::blackwell; }

// TensorRT-LLM gathers tokens where it has no all-to-all for the machine (its fused_moe's alltoall methods; DeepEP is
// an option there). vLLM gathers them unless told otherwise (all2all_backend allgather_reducescatter,
// vllm/config/parallel.py). SGLang has DeepEP's modes for wide expert parallelism, and so has whoever has no habit. No
// all-to-all sends tokens to a part of an expert.
bool gathers_tokens(const Setup& setup) {
  const Stack stack = setup.kernels().stack;
  return setup.scenario.parallelism.moe_tp > 1 || stack == Stack::trtllm || stack == Stack::vllm;
}

// An all-to-all over NVLink, where it was measured. TensorRT-LLM has it for every format (select_alltoall_method_type
// of its fused_moe). SGLang serves experts of four bits by FlashInfer's (--moe-a2a-backend flashinfer, with generated
// kernels; its pull request 31470 of 2026), those of FP8 and BF16 by DeepEP and DeepGEMM, in an NVLink domain as
// between nodes.
bool sends_over_nvlink(const Setup& setup) {
  if (!setup.kernels().fits.contains("nvlink_dispatch")) return false;
  const Precision experts = setup.model.expert_weights;
  const bool four_bits = experts == Precision::nvfp4 || experts == Precision::mxfp4;
  switch (setup.kernels().stack) {
    case Stack::vllm:  // an option (flashinfer_nvlink_one_sided)
      return false;
    case Stack::sglang:
      return four_bits;
    case Stack::trtllm:
    case Stack::megatron:
    case Stack::none:
      break;
  }
  return true;
}

}  // namespace

// DeepEP recommends its low-latency mode for decode.
std::vector<CommMode> inference_modes(const Setup& setup) {
  std::vector<CommMode> modes = {CommMode::none, CommMode::all_reduce};
  if (sends_over_nvlink(setup)) modes.push_back(CommMode::nvlink);
  if (gathers_tokens(setup)) modes.push_back(CommMode::all_gather);
  if (setup.scenario.phase() == WorkloadPhase::decode) modes.push_back(CommMode::low_latency);
  return modes;
}

// DeepEP between nodes of eight GPUs, as NVIDIA's recipes for Hopper have it; in a larger NVLink domain HybridEP.
// With experts split, NCCL's.
CommMode training_mode(const Setup& setup) {
  constexpr int kUsualNode = 8;
  if (setup.scenario.parallelism.ep == 1) return CommMode::none;
  if (setup.scenario.parallelism.moe_tp > 1) return CommMode::all_to_all;
  const bool in_domain = setup.machine.facts.gpus_per_node > kUsualNode && setup.in_one_domain();
  return setup.scenario.training.by_megatron() && in_domain ? CommMode::hybrid_ep : CommMode::normal;
}

bool may_send_fp4(CommMode mode, const Setup& setup) {
  return (mode == CommMode::all_gather || mode == CommMode::nvlink) && is_blackwell(setup);
}

// TensorRT-LLM quantises tokens for NVFP4 experts before it sends them; FP8's are gathered in BF16 and quantised
// behind. DeepSeek trains with tokens sent in FP8 (arXiv 2412.19437, section 3.3), Megatron in BF16.
Precision dispatch_format(CommMode mode, const Setup& setup) {
  if (setup.scenario.phase() == WorkloadPhase::train) {
    return setup.scenario.training.by_megatron() ? Precision::bf16 : Precision::fp8;
  }
  const Precision experts = setup.model.expert_weights;
  if (experts == Precision::nvfp4 && may_send_fp4(mode, setup)) return experts;
  const bool may_cast = dispatcher_of(mode).arrival != Arrival::gathered || mode == CommMode::nvlink;
  return may_cast ? multiplied_in(experts) : Precision::bf16;
}

namespace {

// What the library reckons for a gate without groups, as stacks ask it to. In training it always leaves SMs to others.
int deep_ep_v2_sms_of(const Setup& setup) {
  const Scenario& s = setup.scenario;
  const int experts = setup.model.n_routed_experts + s.routing.redundant_experts;
  return deep_ep_v2_sms({.ranks = s.parallelism.ep,
                         .gpus_per_node = static_cast<int>(setup.machine.facts.gpus_per_node),
                         .experts = experts,
                         .top_k = setup.model.num_experts_per_tok,
                         .hybrid = s.comm.topology == Topology::hybrid,
                         .overlaps = s.phase() == WorkloadPhase::train || !s.kind().plan.empty()},
                        setup.machine.facts);
}

}  // namespace

// SGLang expands rows in decode alone (its pull request 35634; 37261, which is open, in prefill as well), vLLM in
// prefill alone (DeepEPV2PrepareAndFinalize). In training rows are permuted behind the transfer.
RowLayout row_layout(const Setup& setup) {
  const WorkloadPhase phase = setup.scenario.phase();
  const Stack unexpanded = phase == WorkloadPhase::decode ? Stack::vllm : Stack::sglang;
  const bool contiguous = phase == WorkloadPhase::train || setup.kernels().stack == unexpanded;
  return contiguous ? RowLayout::contiguous : RowLayout::expanded;
}

// DeepSeek-V3's training; DeepEP's default. NCCL's holds its channels' where a scenario does not say more.
int transfer_sms(CommMode mode, const Setup& setup) {
  if (mode == CommMode::all_to_all) return 0;
  if (mode == CommMode::deepep_v2) return deep_ep_v2_sms_of(setup);
  if (mode == CommMode::hybrid_ep) return hybrid_ep_usual_sms(setup.in_one_domain());
  const bool vllm = setup.kernels().stack == Stack::vllm;  // DeepEPHTAll2AllManager, num_sms
  return setup.scenario.phase() == WorkloadPhase::train || vllm ? 20 : 24;
}

// SGLang's defaults for its single-batch overlap.
int released_sms(const Setup& setup) {
  if (!setup.scenario.kind().releases) return 0;
  return is_blackwell(setup) ? 32 : 3;
}

// Serving stacks gather keys; so does Transformer Engine where there are windows, and else it has a ring.
ContextMode context_mode(WorkloadPhase phase, bool has_windows) {
  return phase == WorkloadPhase::train && !has_windows ? ContextMode::ring : ContextMode::all_gather;
}

// TensorRT-LLM's q_split_threshold (DeepSeekSparseAttentionConfig), of the tokens in a chunk of prompts. SGLang's and
// vLLM's projections of the indexer are replicated, and so are its scores.
IndexerQueries indexer_queries(const Setup& setup) {
  constexpr int kMostWhole = 8192;
  const PrefillWorkload* prefill = prefill_of(setup.scenario.workload);
  const bool splits = setup.kernels().stack == Stack::trtllm && prefill != nullptr && prefill->tokens > kMostWhole;
  return splits ? IndexerQueries::split : IndexerQueries::whole;
}

// SGLang's and TensorRT-LLM's tables have one of their own beside NCCL's (curves/form.hpp).
bool has_own_all_reduce(const Setup& setup) { return setup.kernels().fits.contains("custom_all_reduce"); }

double largest_custom_all_reduce(const Setup& setup) {
  return setup.scenario.comm.all_reduce == AllReduce::stack ? most_custom_bytes(setup.machine.facts) : 0;
}

// MXFP4's alone: widths in other formats are whole tiles of their kernels where their blocks are. vLLM's
// mxfp4_round_up_hidden_size_and_intermediate_size (fused_moe/oracle/mxfp4.py at commit 001eda3) and SGLang's
// Mxfp4MoEMethod have 256 for FlashInfer's generated kernels, and for Triton's 64 columns; these lay out hidden numbers
// by 256 (a log of vLLM 0.14.1 in its issue 33155: gpt-oss-120b takes 3.8 GiB more). Experts of a checkpoint that is
// FP8 otherwise, as DeepSeek-V4's, run by another method, which does not pad. TensorRT-LLM's generated kernels: 128 and
// 512 (MXFP4WeightTRTLLMGenFusedMoEMethod).
ExpertPadding expert_padding(const Setup& setup) {
  if (setup.model.expert_weights != Precision::mxfp4 || !runs_fused(setup)) return {};
  const Stack stack = setup.kernels().stack;
  if (stack == Stack::trtllm) return is_blackwell(setup) ? ExpertPadding{128, 512} : ExpertPadding{};
  const Layer& layer = setup.model.layer(setup.model.first_main_layer());
  const bool pads_all = stack == Stack::vllm;
  if (stack == Stack::none || (!pads_all && layer.formats.attention_in != Precision::bf16)) return {};
  return is_blackwell(setup) ? ExpertPadding{256, 256} : ExpertPadding{64, 256};
}

// The choice of experts normalises their weights in SGLang since its pull request 7751 (July 2025) and in vLLM since
// 26717 (October 2025); of TensorRT-LLM it is assumed. SGLang's sampler takes FP32, as its decode traces
// on B300 and MI300X show, and so does vLLM's (v1/sample/sampler.py). There AMD's kernels norm heads that were copied
// before: a set that has that copy measured is of them.
SmallKernelHabits small_kernels(const Setup& setup) {
  const KernelSet& set = setup.kernels();
  return {.copies_heads = set.fits.contains(name_of(SmallKernel::head_copy)),
          .choice_normalises = set.stack != Stack::none,
          .casts_logits = set.stack == Stack::sglang || set.stack == Stack::vllm};
}

// SGLang's dual stream: in a CUDA graph, up to 1024 tokens (DUAL_STREAM_TOKEN_THRESHOLD). TensorRT-LLM has a second
// stream for them as well, and vLLM up to 256 (VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD).
bool runs_shared_beside(const Setup& setup) {
  constexpr int kUsual = 1024, kVllm = 256;
  const Scenario& s = setup.scenario;
  if (s.phase() != WorkloadPhase::decode || s.launch != Launch::graph) return false;
  const DecodeWorkload& answers = *decode_of(s.workload);
  const int most = setup.kernels().stack == Stack::vllm ? kVllm : kUsual;
  return setup.kernels().of_a_stack && answers.batch_size * answers.query_len <= most;
}

// A transfer that holds SMs until its end is not issued and received; it has a stream of its own. On Blackwell SGLang's
// single-batch overlap runs shared experts beside another transfer.
const std::string& overlap_plan(const Setup& setup) {
  const ScheduleKind& kind = setup.scenario.kind();
  if (!dispatcher_of(setup.scenario.comm.mode).staged && !kind.resident_plan.empty()) return kind.resident_plan;
  return is_blackwell(setup) && !kind.blackwell_plan.empty() ? kind.blackwell_plan : kind.plan;
}

// Serving stacks decode in CUDA graphs.
Launch launch(WorkloadPhase phase) { return phase == WorkloadPhase::decode ? Launch::graph : Launch::stream; }

// SGLang gives the last stages one more (srt/distributed/utils.py, get_pp_indices), TensorRT-LLM the first ones
// (mapping.py, pp_layers), and so does whoever has no habit; vLLM those before the last, which has the LM head
// (distributed/utils.py, get_pp_indices).
int first_longer_stage(const Setup& setup, int stages, int longer) {
  switch (setup.kernels().stack) {
    case Stack::sglang:
      return stages - longer;
    case Stack::vllm:
      return stages - longer - 1;
    case Stack::trtllm:
    case Stack::megatron:
    case Stack::none:
      break;
  }
  return 0;
}

namespace {

void add_sizes(std::vector<int>& sizes, int first, int last, int step) {
  for (int size = first; size <= last; size += step) sizes.push_back(size);
}

// ServerArgs._generate_cuda_graph_batch_sizes (python/sglang/srt/server_args.py since SGLang's pull request 10372; 12
// came later: 9 requests ran as 16 before): less padding where tokens are drafted. The largest is 256 on fewer than
// four GPUs of less than 160 GB, else 512.
std::vector<int> sglang_batches(const Setup& setup, bool drafts) {
  constexpr int kFewRanks = 4, kMost = 512, kMostOfFew = 256;
  const bool few = setup.scenario.parallelism.group() < kFewRanks && !is_blackwell(setup);
  const int most = few ? kMostOfFew : kMost;
  std::vector<int> sizes;
  if (drafts) {
    add_sizes(sizes, 1, 8, 1);
    add_sizes(sizes, 10, 32, 2);
    add_sizes(sizes, 40, 64, 4);
    add_sizes(sizes, 72, 256, 8);
  } else {
    sizes = {1, 2, 4, 8, 12};
    add_sizes(sizes, 16, 256, 8);
  }
  add_sizes(sizes, 272, most, 16);
  return sizes;
}

// get_batch_sizes_to_capture (srt/model_executor/cuda_graph_runner.py): those that two micro-batches share equally, or
// of which each rank of an attention group has as many tokens where it sends its part of them.
std::vector<int> shared_equally(std::vector<int> sizes, const Setup& setup, int query_len) {
  const Scenario& s = setup.scenario;
  const int halves = s.kind().micro_batches;
  const int parts = halves * (sends_tokens(s.comm.mode) ? s.parallelism.tp : 1);
  const int tokens = halves > 1 ? 1 : query_len;
  std::erase_if(sizes, [&](int size) { return size * tokens % parts != 0; });
  return sizes;
}

// vLLM captures tokens: CompilationConfig.max_cudagraph_capture_size (vllm/config/compilation.py at commit 002284d),
// each rounded up to whole requests where some are drafted.
std::vector<int> vllm_batches(int query_len) {
  std::vector<int> sizes = {1, 2, 4};
  add_sizes(sizes, 8, 248, 8);
  add_sizes(sizes, 256, 512, 16);
  for (int& size : sizes) size = (size + query_len - 1) / query_len;
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

// TensorRT-LLM pads only where it is told to: CudaGraphConfig.enable_padding is off (tensorrt_llm/llmapi/llm_args.py at
// commit 0004396). Of DeepSeek's own stack no list is known.
std::vector<int> captured_batches(const Setup& setup) {
  const int query_len = decode_of(setup.scenario.workload)->query_len;
  switch (setup.kernels().stack) {
    case Stack::sglang:
      return shared_equally(sglang_batches(setup, query_len > 1), setup, query_len);
    case Stack::vllm:
      return vllm_batches(query_len);
    case Stack::trtllm:
    case Stack::megatron:
    case Stack::none:
      break;
  }
  return {};
}

// On a pipeline each of the micro-batches that go round has a graph of its own; all are as the fullest one's.
int graph_batch(const Setup& setup, int requests) {
  const Scenario& s = setup.scenario;
  if (s.phase() != WorkloadPhase::decode || s.launch == Launch::stream) return 0;
  const int graphs = is_staged(s) ? std::min(s.parallelism.pp, requests) : 1;
  const int fullest = (requests + graphs - 1) / graphs;
  const std::vector<int> sizes = captured_batches(setup);
  const auto captured = std::lower_bound(sizes.begin(), sizes.end(), fullest);
  return captured == sizes.end() ? 0 : graphs * *captured;
}

// SGLang masks the choices of such rows before DeepEP (num_token_non_padded in forward_deepep of its models) and
// nowhere else (its pull request 25852); vLLM masks them by VLLM_MOE_SKIP_PADDING (its pull request 46428), which has
// become its default. Of the others it is not known, and they reach no expert.
bool routes_padding(const Setup& setup) {
  return setup.kernels().stack == Stack::sglang && !dispatcher_of(setup.scenario.comm.mode).of_deep_ep;
}

// DeepSeek-V3 computes norms, MLA's up-projections and SwiGLU again; Megatron nothing unless told to.
Recompute recompute(TrainingOperators operators) {
  return operators == TrainingOperators::megatron ? Recompute::none : Recompute::selective;
}

// DeepSeek-V3 keeps AdamW's moments in BF16 (arXiv 2412.19437, section 3.3.3).
bool keeps_fp32_moments(TrainingOperators operators) { return operators == TrainingOperators::megatron; }

}  // namespace moeline::habits
