// What SGLang, vLLM and TensorRT-LLM do with the flags that `plan` prints: which of them they refuse, and which they
// change so that it is another plan. Learnt from their own checks; a rule that a note of ours tells of counts as kept.
//
// Left out are rules of flags that we do not print, and those that hang on what is installed.
#pragma once

#include <string>
#include <vector>

#include "tests/plan/stack_rules_command.hpp"

namespace moeline::testing {

inline bool is_one_of(const std::string& word, const std::set<std::string>& words) { return words.contains(word); }

// SGLang's: --tp-size counts all GPUs of a unit, and groups are those of attention.

inline int groups_of(const ReadCommand& c) {
  return c.has("--enable-dp-attention") ? std::max(1, c.number("--dp-size", 1)) : 1;
}
inline bool drafts(const ReadCommand& c) { return c.has("--speculative-algorithm"); }
inline bool has_backend(const ReadCommand& c, const char* backend) { return c.word("--moe-a2a-backend") == backend; }
inline bool overlaps(const ReadCommand& c) {
  return c.has("--enable-two-batch-overlap") || c.has("--enable-single-batch-overlap");
}
inline int requests_of_group(const ReadCommand& c) {
  constexpr int kOfDrafts = 48;
  if (!c.has("--max-running-requests") && !drafts(c)) return 1;  // as many as memory holds
  return c.number("--max-running-requests", kOfDrafts) / groups_of(c);
}
/// Tokens of a rank that DeepEP's second version has to send at once.
inline int sent_by_second_version(const ReadCommand& c) {
  const int drafted = c.number("--speculative-num-draft-tokens", 1);
  return std::max(c.number("--chunked-prefill-size", 0) / groups_of(c), c.number("--cuda-graph-max-bs", 0) * drafted);
}

inline const std::vector<StackRule>& sglang_rules() {
  static const std::set<std::string> kFlags = words_of(
      "--model-path --host --port --disaggregation-mode --tp-size --nnodes --node-rank "
      "--dist-init-addr --dp-size --enable-dp-attention --enable-dp-lm-head --moe-dense-tp-size "
      "--ep-size --moe-a2a-backend --deepep-mode --deepep-v2-mode --deepep-config "
      "--chunked-prefill-size --max-running-requests --cuda-graph-max-bs --enable-two-batch-overlap "
      "--enable-single-batch-overlap --enable-mixed-chunk --ep-num-redundant-experts --enable-eplb "
      "--speculative-algorithm --speculative-num-steps --speculative-eagle-topk "
      "--speculative-num-draft-tokens --speculative-moe-a2a-backend --mem-fraction-static");
  static const std::vector<StackRule> kRules = {
      {Effect::refused, "A flag is one that it has.", "server_args.py:ServerArgs, add_cli_args at 001067f",
       [](const ReadCommand& c, const StackFacts&) { return c.has_others_than(kFlags); }, "--enable-deepep-moe"},
      {Effect::refused, "--moe-a2a-backend is one of its words.", "server_args.py:MOE_A2A_BACKEND_CHOICES at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         return !is_one_of(c.word("--moe-a2a-backend", "none"),
                           {"none", "deepep", "mooncake", "nixl", "mori", "ascend_fuseep", "flashinfer", "megamoe",
                            "deepep_v2", "pplx", "ascend_tp"});
       },
       "--moe-a2a-backend deepep_low_latency"},
      {Effect::refused, "--deepep-mode is auto, normal or low_latency.",
       "server_args.py:ServerArgs.deepep_mode at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         return !is_one_of(c.word("--deepep-mode", "auto"), {"auto", "normal", "low_latency"});
       },
       "--deepep-mode low-latency"},
      {Effect::refused, "--deepep-v2-mode is direct or hybrid.", "server_args.py:ServerArgs.deepep_v2_mode at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         return !is_one_of(c.word("--deepep-v2-mode", "direct"), {"direct", "hybrid"});
       },
       "--deepep-v2-mode auto"},
      {Effect::refused, "--disaggregation-mode is null, prefill or decode.",
       "server_args.py:_handle_load_balance_method at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         return !is_one_of(c.word("--disaggregation-mode", "null"), {"null", "prefill", "decode"});
       },
       "--disaggregation-mode serve"},
      {Effect::refused, "Nodes have as many GPUs of --tp-size each.", "server_args.py:check_server_args at 001067f",
       [](const ReadCommand& c, const StackFacts&) { return c.number("--tp-size", 1) % c.number("--nnodes", 1) != 0; },
       "--tp-size 20 --nnodes 3"},
      {Effect::refused, "Attention groups have as many GPUs of --tp-size each.",
       "server_args.py:_handle_data_parallelism at 001067f",
       [](const ReadCommand& c, const StackFacts&) { return c.number("--tp-size", 1) % groups_of(c) != 0; },
       "--tp-size 8 --dp-size 3 --enable-dp-attention"},
      {Effect::refused, "Data parallelism over nodes is attention's.", "server_args.py:check_server_args at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         return c.number("--dp-size", 1) > 1 && c.number("--nnodes", 1) > 1 && !c.has("--enable-dp-attention");
       },
       "--tp-size 16 --dp-size 2 --nnodes 2"},
      {Effect::refused, "--moe-dense-tp-size is 1 or --tp-size.", "server_args.py:check_server_args at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         const int tp = c.number("--tp-size", 1), dense = c.number("--moe-dense-tp-size", tp);
         return dense != 1 && dense != tp;
       },
       "--tp-size 8 --moe-dense-tp-size 2"},
      {Effect::refused, "--enable-dp-lm-head is for attention's data parallelism.",
       "arg_groups/overrides.py:_dp_lm_head_validation at 003bbaf",
       [](const ReadCommand& c, const StackFacts&) {
         return c.has("--enable-dp-lm-head") && !c.has("--enable-dp-attention");
       },
       "--tp-size 8 --enable-dp-lm-head"},
      {Effect::changed, "One attention group has no data parallelism of attention.",
       "arg_groups/overrides.py:_data_parallelism_defaults at 003bbaf",
       [](const ReadCommand& c, const StackFacts&) { return c.has("--enable-dp-attention") && groups_of(c) == 1; },
       "--tp-size 8 --enable-dp-attention"},
      {Effect::changed, "An all-to-all is among all GPUs: --ep-size is --tp-size.",
       "arg_groups/overrides.py:_a2a_ep_size at 003bbaf",
       [](const ReadCommand& c, const StackFacts&) {
         const int tp = c.number("--tp-size", 1);
         return c.word("--moe-a2a-backend", "none") != "none" && c.number("--ep-size", 1) != tp;
       },
       "--tp-size 8 --ep-size 4 --moe-a2a-backend deepep"},
      {Effect::refused, "Every rank has as many experts, copies among them.",
       "eplb/expert_location.py:_init_common at 6270b01",
       [](const ReadCommand& c, const StackFacts& facts) {
         return (facts.experts + c.number("--ep-num-redundant-experts", 0)) % c.number("--ep-size", 1) != 0;
       },
       "--tp-size 144 --ep-size 144"},
      {Effect::refused, "--enable-eplb has experts to move between ranks.",
       "server_args.py:_handle_eplb_and_dispatch at 001067f",
       [](const ReadCommand& c, const StackFacts&) { return c.has("--enable-eplb") && c.number("--ep-size", 1) == 1; },
       "--tp-size 8 --enable-eplb"},
      {Effect::refused, "Two batches overlap where tokens are sent, or attention is parallel over data.",
       "server_args.py:_check_two_batch_overlap at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         return c.has("--enable-two-batch-overlap") && c.word("--moe-a2a-backend", "none") == "none" &&
                !c.has("--enable-dp-attention");
       },
       "--tp-size 8 --enable-two-batch-overlap"},
      {Effect::refused, "Nothing overlaps with DeepEP's second version.", "server_args.py:_handle_a2a_moe at 001067f",
       [](const ReadCommand& c, const StackFacts&) { return has_backend(c, "deepep_v2") && overlaps(c); },
       "--tp-size 8 --ep-size 8 --moe-a2a-backend deepep_v2 --enable-two-batch-overlap"},
      {Effect::refused, "Drafts do not go by DeepEP's second version.",
       "server_args.py:_validate_deepep_v2_speculative_draft at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         return drafts(c) && c.word("--speculative-moe-a2a-backend", c.word("--moe-a2a-backend")) == "deepep_v2";
       },
       "--tp-size 8 --ep-size 8 --moe-a2a-backend deepep_v2 --speculative-algorithm EAGLE"},
      {Effect::refused, "DeepEP's second version is for models that it was validated with.",
       "server_args.py:_validate_deepep_v2_model_architecture at 001067f",
       [](const ReadCommand& c, const StackFacts& facts) {
         const bool known = is_one_of(facts.model_type, {"deepseek_v3", "kimi_k2", "deepseek_v4", "qwen3_moe"});
         return has_backend(c, "deepep_v2") && !known && !c.says("second version is refused");
       },
       nullptr},
      {Effect::refused, "Buffers of DeepEP's second version hold a chunk, and what a graph decodes.",
       "server_args.py:_validate_deepep_v2_dispatch_token_budget at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         const int held = c.variable("SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128);
         return has_backend(c, "deepep_v2") && sent_by_second_version(c) > held;
       },
       "--tp-size 8 --ep-size 8 --moe-a2a-backend deepep_v2 --chunked-prefill-size 4096"},
      {Effect::refused, "Buffers of DeepEP's low-latency mode hold 1024 tokens of a rank at most.",
       "layers/moe/token_dispatcher/deepep.py:_DeepEPDispatcherImplBase at 003a81b",
       [](const ReadCommand& c, const StackFacts&) {
         return has_backend(c, "deepep") && c.variable("SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128) > 1024;
       },
       "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=1536 python --tp-size 8 --moe-a2a-backend deepep"},
      {Effect::refused,
       "These buffers hold the tokens of every step that decodes, unless a note says that they do not.",
       "csrc/deep_ep.cpp:low_latency_dispatch of deepseek-ai/DeepEP at 2df3680",
       [](const ReadCommand& c, const StackFacts&) {
         const int held = c.variable("SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128);
         const int sent = c.number("--cuda-graph-max-bs", 0) * c.number("--speculative-num-draft-tokens", 1);
         return has_backend(c, "deepep") && c.word("--deepep-mode") != "normal" && sent > held &&
                !c.says("tokens at most in the low-latency mode");
       },
       "--tp-size 8 --moe-a2a-backend deepep --cuda-graph-max-bs 256"},
      {Effect::refused, "DeepEP's normal mode is told its settings, or has some for so many ranks.",
       "layers/moe/token_dispatcher/deepep.py:get_deepep_buffer at 003a81b",
       [](const ReadCommand& c, const StackFacts&) {
         return has_backend(c, "deepep") && c.word("--deepep-mode") != "low_latency" && !c.has("--deepep-config") &&
                !has_deep_ep_sizes(c.number("--tp-size", 1));
       },
       "--tp-size 72 --ep-size 72 --moe-a2a-backend deepep --deepep-mode auto"},
      {Effect::changed, "DeepEP's normal mode has no CUDA graphs.", "server_args.py:_handle_a2a_moe at 001067f",
       [](const ReadCommand& c, const StackFacts&) {
         return has_backend(c, "deepep") && c.word("--deepep-mode") == "normal" && c.has("--cuda-graph-max-bs");
       },
       "--tp-size 8 --moe-a2a-backend deepep --deepep-mode normal --cuda-graph-max-bs 64"},
      {Effect::refused, "A group's chunk is whole pages of the KV cache.",
       "server_args.py:check_server_args at 001067f; arg_groups/overrides.py:_mla_backend_page_constraints at 003bbaf",
       [](const ReadCommand& c, const StackFacts& facts) {
         return c.number("--chunked-prefill-size", 0) / groups_of(c) % facts.page != 0;
       },
       "--tp-size 8 --enable-mixed-chunk --chunked-prefill-size 8288"},
      {Effect::changed, "Prompts and answers are not mixed where tokens are drafted, which a note has to say.",
       "arg_groups/speculative_hook.py:_handle_eagle_family at 004c82e",
       [](const ReadCommand& c, const StackFacts&) {
         return drafts(c) && c.has("--enable-mixed-chunk") && !c.says("take turns where tokens are drafted");
       },
       "--tp-size 8 --enable-mixed-chunk --speculative-algorithm EAGLE"},
      {Effect::changed, "A unit that drafts tokens has 48 requests unless told how many.",
       "arg_groups/speculative_hook.py:_handle_eagle_family at 004c82e",
       [](const ReadCommand& c, const StackFacts&) { return drafts(c) && !c.has("--max-running-requests"); },
       "--tp-size 8 --speculative-algorithm EAGLE"},
      {Effect::refused, "Every attention group has a request.", "managers/tp_worker.py:TpModelWorker at 4f34e24",
       [](const ReadCommand& c, const StackFacts&) { return requests_of_group(c) == 0; },
       "--tp-size 64 --dp-size 64 --enable-dp-attention --speculative-algorithm EAGLE"},
      {Effect::changed, "A chain of drafts has as many tokens as steps, and the one that they follow.",
       "arg_groups/speculative_hook.py:_handle_eagle_family at 004c82e",
       [](const ReadCommand& c, const StackFacts&) {
         return drafts(c) && c.number("--speculative-eagle-topk", 1) == 1 &&
                c.number("--speculative-num-draft-tokens", 0) != c.number("--speculative-num-steps", -1) + 1;
       },
       "--speculative-algorithm EAGLE --speculative-num-steps 2 --speculative-eagle-topk 1 "
       "--speculative-num-draft-tokens 2"},
  };
  return kRules;
}

// vLLM's.

inline int ranks_of(const ReadCommand& c) {
  return c.number("--tensor-parallel-size", 1) * c.number("--data-parallel-size", 1);
}
inline int copies_of(const ReadCommand& c) { return number_at(c.word("--eplb-config"), "num_redundant_experts"); }

inline const std::vector<StackRule>& vllm_rules() {
  static const std::set<std::string> kFlags = words_of(
      "--tensor-parallel-size --enable-expert-parallel --data-parallel-size "
      "--data-parallel-size-local --data-parallel-hybrid-lb --data-parallel-start-rank "
      "--data-parallel-address --data-parallel-rpc-port --all2all-backend --max-num-batched-tokens "
      "--max-num-seqs --enable-dbo --dbo-decode-token-threshold --dbo-prefill-token-threshold "
      "--enable-eplb --eplb-config --speculative-config --kv-transfer-config --gpu-memory-utilization");
  static const std::vector<StackRule> kRules = {
      {Effect::refused, "A flag is one that it has.",
       "vllm/config/parallel.py:ParallelConfig at 00193b8; vllm/engine/arg_utils.py:create_engine_config",
       [](const ReadCommand& c, const StackFacts&) { return c.has_others_than(kFlags); }, "--expert-parallel-size 8"},
      {Effect::refused, "--all2all-backend is one of its words.", "vllm/config/parallel.py:All2AllBackend at 00193b8",
       [](const ReadCommand& c, const StackFacts&) {
         return !is_one_of(c.word("--all2all-backend", "allgather_reducescatter"),
                           {"naive", "pplx", "deepep_high_throughput", "deepep_low_latency", "deepep_v2",
                            "mori_high_throughput", "mori_low_latency", "nixl_ep", "allgather_reducescatter",
                            "flashinfer_all2allv", "flashinfer_nvlink_two_sided", "flashinfer_nvlink_one_sided"});
       },
       "--all2all-backend deepep"},
      {Effect::changed, "naive and pplx have become a gathering of tokens.",
       "vllm/config/parallel.py:_validate_parallel_config at 00193b8",
       [](const ReadCommand& c, const StackFacts&) {
         return is_one_of(c.word("--all2all-backend"), {"naive", "pplx"});
       },
       "--all2all-backend pplx"},
      {Effect::refused, "Two batches overlap by DeepEP's first version or NIXL's alone.",
       "vllm/config/vllm.py:__post_init__ at 000fc94",
       [](const ReadCommand& c, const StackFacts&) {
         return c.has("--enable-dbo") &&
                !is_one_of(c.word("--all2all-backend"), {"deepep_low_latency", "deepep_high_throughput", "nixl_ep"});
       },
       "--enable-dbo --all2all-backend allgather_reducescatter"},
      {Effect::refused, "--enable-eplb goes with --enable-expert-parallel.",
       "vllm/config/parallel.py:_validate_parallel_config at 00193b8",
       [](const ReadCommand& c, const StackFacts&) {
         return c.has("--enable-eplb") && !c.has("--enable-expert-parallel");
       },
       "--tensor-parallel-size 8 --enable-eplb"},
      {Effect::refused, "--enable-eplb has ranks to move experts between.",
       "vllm/config/parallel.py:_validate_parallel_config at 00193b8",
       [](const ReadCommand& c, const StackFacts&) { return c.has("--enable-eplb") && ranks_of(c) == 1; },
       "--enable-expert-parallel --enable-eplb"},
      {Effect::refused, "Copies of experts go with --enable-eplb.",
       "vllm/config/parallel.py:_validate_parallel_config at 00193b8",
       [](const ReadCommand& c, const StackFacts&) { return copies_of(c) > 0 && !c.has("--enable-eplb"); },
       R"(--enable-expert-parallel --eplb-config '{"num_redundant_experts":32}')"},
      {Effect::refused, "With --enable-eplb every rank has as many experts, copies among them.",
       "vllm/model_executor/layers/fused_moe/layer.py:FusedMoE at c439a13",
       [](const ReadCommand& c, const StackFacts& facts) {
         return c.has("--enable-eplb") && (facts.experts + copies_of(c)) % ranks_of(c) != 0;
       },
       "--data-parallel-size 144 --enable-expert-parallel --enable-eplb "
       R"(--eplb-config '{"num_redundant_experts":16}')"},
      {Effect::refused, "A node has no more attention groups than the unit.",
       "vllm/config/parallel.py:_validate_parallel_config at 00193b8",
       [](const ReadCommand& c, const StackFacts&) {
         return c.number("--data-parallel-size-local", 1) > c.number("--data-parallel-size", 1);
       },
       "--data-parallel-size 4 --data-parallel-size-local 8"},
      {Effect::refused, "--data-parallel-hybrid-lb goes with --data-parallel-size-local.",
       "vllm/engine/arg_utils.py:create_engine_config",
       [](const ReadCommand& c, const StackFacts&) {
         return c.has("--data-parallel-hybrid-lb") && !c.has("--data-parallel-size-local");
       },
       "--data-parallel-size 16 --data-parallel-hybrid-lb"},
      {Effect::refused, "A step has a token of every request.",
       "vllm/config/scheduler.py:verify_max_model_len at 01230b4",
       [](const ReadCommand& c, const StackFacts&) {
         return c.has("--max-num-seqs") && c.number("--max-num-batched-tokens", 2048) < c.number("--max-num-seqs", 128);
       },
       "--max-num-batched-tokens 64 --max-num-seqs 96"},
      {Effect::refused, "Tensor parallelism over nodes is told of them, which a note has to say.",
       "vllm/config/parallel.py:__post_init__ at 00193b8",
       [](const ReadCommand& c, const StackFacts& facts) {
         return c.number("--tensor-parallel-size", 1) > facts.gpus_per_node && !c.says("multi-node executor");
       },
       "--tensor-parallel-size 16"},
      {Effect::refused, "--tensor-parallel-size divides the heads of attention.",
       "vllm/config.py:ModelConfig.verify_with_parallel_config",
       [](const ReadCommand& c, const StackFacts& facts) {
         return facts.heads % c.number("--tensor-parallel-size", 1) != 0;
       },
       "--tensor-parallel-size 6"},
      {Effect::refused, "Drafted tokens are as many for each MTP module.",
       "vllm/config/speculative.py:SpeculativeConfig.__post_init__",
       [](const ReadCommand& c, const StackFacts& facts) {
         const int drafted = number_at(c.word("--speculative-config"), "num_speculative_tokens");
         return drafted > 0 && (facts.mtp == 0 || (drafted > facts.mtp && drafted % facts.mtp != 0));
       },
       nullptr},
      {Effect::refused, "DeepEP's normal mode has settings for so many ranks, or a note says that it has not.",
       "deep_ep/buffer.py:get_dispatch_config of deepseek-ai/DeepEP at dcfd954",
       [](const ReadCommand& c, const StackFacts&) {
         return c.word("--all2all-backend") == "deepep_high_throughput" && !has_deep_ep_sizes(ranks_of(c)) &&
                !c.says("has no sizes of buffers");
       },
       "--data-parallel-size 72 --enable-expert-parallel --all2all-backend deepep_high_throughput"},
  };
  return kRules;
}

// TensorRT-LLM's.

inline bool knows_options(const ReadCommand& c) {
  static const std::set<std::string> kKnown = {"enable_attention_dp", "enable_chunked_prefill", "cuda_graph_config",
                                               "speculative_config", "cache_transceiver_config"};
  return std::all_of(c.options.begin(), c.options.end(),
                     [](const auto& option) { return kKnown.contains(option.first); });
}

inline const std::vector<StackRule>& trtllm_rules() {
  static const std::set<std::string> kFlags = words_of(
      "--host --port --tp_size --ep_size --max_batch_size --max_num_tokens "
      "--kv_cache_free_gpu_memory_fraction --extra_llm_api_options");
  static const std::vector<StackRule> kRules = {
      {Effect::refused, "A flag is one that it has.", "tensorrt_llm/commands/serve.py:serve at 00209af",
       [](const ReadCommand& c, const StackFacts&) { return c.has_others_than(kFlags); }, "--moe_ep_size 8"},
      {Effect::refused, "An option of the file is one that it has.",
       "tensorrt_llm/llmapi/llm_args.py:BaseLlmArgs, TorchLlmArgs at 0004396",
       [](const ReadCommand& c, const StackFacts&) { return !knows_options(c); },
       "printf '%s\\n' 'enable_attn_dp: true' > serve.yaml"},
      {Effect::refused, "Ranks of experts, with the parts that each is split into, are all GPUs.",
       "tensorrt_llm/mapping.py:Mapping at 05ebebb",
       [](const ReadCommand& c, const StackFacts&) { return c.number("--tp_size", 1) % c.number("--ep_size", 1) != 0; },
       "--tp_size 8 --ep_size 3"},
      {Effect::changed,
       "Ranks have as many experts, and what is left over nobody has, unless a note says of the copies.",
       "tensorrt_llm/mapping.py:ep_experts at 05ebebb",
       [](const ReadCommand& c, const StackFacts& facts) {
         return facts.experts % c.number("--ep_size", 1) != 0 && !c.says("moe_config.load_balancer");
       },
       "--tp_size 144 --ep_size 144"},
      {Effect::refused, "Caches get a share from 0 to 1.",
       "tensorrt_llm/llmapi/llm_args.py:validate_free_gpu_memory_fraction",
       [](const ReadCommand& c, const StackFacts&) {
         const double share = std::atof(c.word("--kv_cache_free_gpu_memory_fraction", "0.9").c_str());
         return share < 0 || share > 1;
       },
       "--kv_cache_free_gpu_memory_fraction 1.2"},
      {Effect::refused, "MTP drafts a token at least.",
       "tensorrt_llm/llmapi/llm_args.py:MTPDecodingConfig.set_max_total_draft_tokens at 0004396",
       [](const ReadCommand& c, const StackFacts&) {
         const std::string drafting = c.option("speculative_config");
         return !drafting.empty() && number_at(drafting, "num_nextn_predict_layers") == 0;
       },
       "printf 'speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 0}' > serve.yaml"},
      {Effect::refused, "Caches are sent by one of its ways.",
       "tensorrt_llm/llmapi/llm_args.py:CacheTransceiverConfig.backend",
       [](const ReadCommand& c, const StackFacts&) {
         return !is_one_of(c.option("cache_transceiver_config"),
                           {"", "{backend: DEFAULT}", "{backend: UCX}", "{backend: NIXL}", "{backend: MPI}"});
       },
       "printf 'cache_transceiver_config: {backend: default}' > serve.yaml"},
  };
  return kRules;
}

}  // namespace moeline::testing
