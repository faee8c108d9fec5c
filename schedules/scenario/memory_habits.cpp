#include <algorithm>
#include <cmath>

#include "schedules/scenario/stack_habits.hpp"

namespace moeline::habits {
namespace {

constexpr double kMiB = 1024;  // of a GiB

// What SGLang sizes by a card's memory: tokens of a prompt in a step, and requests that a CUDA graph is captured for.
struct SglangSizes {
  double chunked_prefill, captured;
};

SglangSizes sglang_sizes(double memory_gib, int ranks) {
  constexpr int kFewRanks = 4;
  const bool few = ranks < kFewRanks;
  if (memory_gib < 35) return {memory_gib < 20 ? 2048.0 : 4096.0, memory_gib < 20 ? 8.0 : few ? 48.0 : 160.0};
  if (memory_gib < 60) return {4096, few ? 32.0 : 160.0};
  if (memory_gib < 160) return {8192, few ? 256.0 : 512.0};
  return {16384, 512};
}

// handle_gpu_memory_settings (python/sglang/srt/arg_groups/memory_hook.py at commit 031ed82), in MiB: what it leaves to
// activations, graphs and libraries. Left out is what attention data parallelism adds for each request that is
// captured, 3 MiB and a rank: with the default's 512 it is 12 GiB of eight GPUs, and no recipe leaves it at that.
double sglang_fraction(const Setup& setup) {
  const Scenario& s = setup.scenario;
  const int ranks = s.parallelism.group() * s.parallelism.pp;
  const double memory = setup.machine.facts.memory_gib * kMiB;
  const SglangSizes sizes = sglang_sizes(setup.machine.facts.memory_gib, ranks);
  double reserved = 512 + 1.5 * sizes.chunked_prefill + ranks / 8.0 * kMiB + 2 * sizes.captured;
  if (setup.model.is_mla()) reserved += 1.5 * kMiB;  // graphs of prefill
  if (memory > 60 * kMiB) reserved = std::max(reserved, 10 * kMiB);
  if (dispatcher_of(s.comm.mode).of_deep_ep) reserved += 2 * kMiB;
  constexpr double kLeast = 0.1, kThousandth = 1e3;  // it rounds
  return std::max(kLeast, std::round((memory - reserved) / memory * kThousandth) / kThousandth);
}

bool is_large_for_vllm(const MachineFacts& facts) {
  constexpr double kSmallGib = 70;
  return facts.memory_gib >= kSmallGib && facts.generation() != Generation::ampere;
}

bool drafts(const Setup& setup) {
  const DecodeWorkload* decode = decode_of(setup.scenario.workload);
  return decode != nullptr && decode->query_len > 1;
}

}  // namespace

FractionOf fraction_of(Stack stack) {
  switch (stack) {
    case Stack::sglang:  // rest_memory of _profile_available_bytes, srt/mem_cache/kv_cache_configurator.py
      return FractionOf::static_parts;
    case Stack::trtllm:  // KvCacheCreator._cal_max_memory, tensorrt_llm/_torch/pyexecutor/_util.py
      return FractionOf::rest;
    case Stack::vllm:  // determine_available_memory, vllm/v1/worker/gpu_worker.py
    case Stack::megatron:
    case Stack::none:
      break;
  }
  return FractionOf::all;
}

std::string fraction_option(Stack stack) {
  switch (stack) {
    case Stack::sglang:
      return "SGLang's --mem-fraction-static";
    case Stack::trtllm:
      return "TensorRT-LLM's free_gpu_memory_fraction";
    case Stack::vllm:
      return "vLLM's --gpu-memory-utilization";
    case Stack::megatron:
    case Stack::none:
      break;
  }
  return "";
}

// vLLM had 0.9 until it counted CUDA graphs in it, and 0.92 since (its pull request 38284), to the same end; graphs are
// not counted here. TensorRT-LLM: KvCacheConfig (llmapi/llm_args.py).
double memory_fraction(const Setup& setup) {
  constexpr double kUsual = 0.9;
  return setup.scenario.memory.stack == Stack::sglang ? sglang_fraction(setup) : kUsual;
}

// SGLang's by the card's memory, of all attention groups together; vLLM's get_batch_defaults (engine/arg_utils.py), of
// a server; TensorRT-LLM's max_num_tokens (llmapi/llm_args.py).
int prefill_tokens(const Setup& setup, Stack scheduler) {
  constexpr int kUsual = 8192, kOfSmall = 2048;
  const MachineFacts& facts = setup.machine.facts;
  if (scheduler == Stack::vllm) return is_large_for_vllm(facts) ? kUsual : kOfSmall;
  if (scheduler != Stack::sglang) return kUsual;
  const Parallelism& split = setup.scenario.parallelism;
  return static_cast<int>(sglang_sizes(facts.memory_gib, split.group() * split.pp).chunked_prefill) /
         split.attention_groups();
}

// SGLang's resolve_max_num_reqs (kv_cache_configurator.py at commit 003fca8), which allows more where a cache holds
// many requests of the longest kind, and with drafts 48 (_handle_speculative_decoding), both of all attention groups
// where it was told; vLLM's get_batch_defaults (engine/arg_utils.py); TensorRT-LLM's max_batch_size.
int most_running(const Setup& setup, double cached_tokens) {
  constexpr int kSglang = 2048, kSglangWithDrafts = 48, kTrtllm = 2048, kVllm = 1024, kVllmOfSmall = 256;
  if (setup.scenario.memory.told_batch > 0) return setup.scenario.memory.told_batch;
  switch (setup.scenario.memory.stack) {
    case Stack::sglang:
      if (drafts(setup)) return std::max(1, kSglangWithDrafts / setup.scenario.parallelism.attention_groups());
      return static_cast<int>(std::clamp(cached_tokens / 2, 1.0, static_cast<double>(kSglang)));
    case Stack::trtllm:
      return kTrtllm;
    case Stack::vllm:
      return is_large_for_vllm(setup.machine.facts) ? kVllm : kVllmOfSmall;
    case Stack::megatron:
    case Stack::none:
      break;
  }
  return kNoLimit;
}

// It samples as many requests as it may run with random logits when it starts (GPUModelRunner._dummy_sampler_run), and
// sorts them: from logs of starts, 39.8 and 41.2 bytes of each logit (gemma-3-4b on B200, 1024 requests; Llama-3-8B on
// H100, 256: vLLM's pull requests 21489 and 10511).
double vllm_start_bytes(const Architecture& model, int requests) {
  constexpr double kBytesPerLogit = 40;
  return kBytesPerLogit * requests * model.vocab_size;
}

double start_bytes(const Setup& setup) {
  if (setup.scenario.memory.stack != Stack::vllm) return 0;
  return vllm_start_bytes(setup.model, most_running(setup, 0));
}

}  // namespace moeline::habits
