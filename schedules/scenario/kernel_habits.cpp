#include "schedules/scenario/kernel_habits.hpp"

namespace moeline::habits {
namespace {

template <Generation generation>
bool is(const Setup& setup) {
  return setup.machine.facts.generation() == generation;
}
constexpr auto is_ampere = is<Generation::ampere>;
constexpr auto is_hopper = is<Generation::hopper>;
constexpr auto is_blackwell = is<Generation::blackwell>;

bool has_experts_in(const Setup& setup, Precision format) { return setup.model.expert_weights == format; }
bool shares_attention(const Setup& setup) { return setup.scenario.parallelism.attention_groups() == 1; }
bool decodes(const Setup& setup) { return decode_of(setup.scenario.workload) != nullptr; }
bool decodes_latents(const Setup& setup) { return setup.model.is_mla() && decodes(setup); }

}  // namespace

const std::vector<KernelHabit<MoeBackend>>& expert_kernels() {
  static const std::vector<KernelHabit<MoeBackend>> kRows = {
      {Stack::trtllm, "few tokens on Blackwell where ranks share attention",
       [](const Setup& s) { return is_blackwell(s) && shares_attention(s); }, MoeBackend::trtllm_gen,
       "moe_config.backend TRTLLM in TensorRT-LLM's examples/configs"},
      {Stack::trtllm, "FP8 in blocks on Blackwell with attention data parallelism",
       [](const Setup& s) { return is_blackwell(s) && has_experts_in(s, Precision::fp8); }, MoeBackend::deepgemm,
       "moe_config.backend DEEPGEMM in TensorRT-LLM's examples/configs"},
      {Stack::trtllm, "MXFP4 on Blackwell",
       [](const Setup& s) { return is_blackwell(s) && has_experts_in(s, Precision::mxfp4); }, MoeBackend::trtllm_gen,
       "the only kernels of its table"},
      {Stack::trtllm, "experts elsewhere", [](const Setup& s) { return is_hopper(s) || is_blackwell(s); },
       MoeBackend::cutlass, "moe_config.backend CUTLASS, TensorRT-LLM's default"},
      {Stack::sglang, "experts on Blackwell", is_blackwell, MoeBackend::trtllm_gen,
       "moe_runner_backend flashinfer_trtllm and flashinfer_mxfp4, srt/arg_groups/model_overrides at 165e34c"},
      {Stack::sglang, "four bits before Blackwell",
       [](const Setup& s) { return has_experts_in(s, Precision::int4) || has_experts_in(s, Precision::mxfp4); },
       MoeBackend::marlin, "kernel_source of its tables (data/aic, moe_sglang_ep1)"},
      {Stack::sglang, "experts before Blackwell", [](const Setup& s) { return is_hopper(s) || is_ampere(s); },
       MoeBackend::triton, "kernel_source of its tables (data/aic, moe_sglang_ep1)"},
      {Stack::vllm, "four bits without FP4 scales", [](const Setup& s) { return has_experts_in(s, Precision::int4); },
       MoeBackend::marlin, "fused_moe/oracle/int_wna16.py"},
      {Stack::vllm, "experts on Blackwell", is_blackwell, MoeBackend::trtllm_gen,
       "FLASHINFER_TRTLLM first in fused_moe/oracle/fp8.py (001a058), nvfp4.py (0136201), mxfp4.py (001eda3), "
       "unquantized.py (011fbfd)"},
      {Stack::vllm, "FP8 in blocks on Hopper with expert parallelism",
       [](const Setup& s) {
         return is_hopper(s) && has_experts_in(s, Precision::fp8) && s.scenario.parallelism.ep > 1;
       },
       MoeBackend::cutlass, "fused_moe/oracle/fp8.py, _get_priority_backends (001a058)"},
      {Stack::vllm, "FP8 in blocks on Hopper without expert parallelism",
       [](const Setup& s) { return is_hopper(s) && has_experts_in(s, Precision::fp8); }, MoeBackend::triton,
       "fused_moe/oracle/fp8.py, _get_priority_backends (001a058)"},
      {Stack::vllm, "FP8 by tensor on Hopper",
       [](const Setup& s) { return is_hopper(s) && is_fp8_by_tensor(s.model.expert_weights); }, MoeBackend::cutlass,
       "FLASHINFER_CUTLASS before the others in fused_moe/oracle/fp8.py (001a058)"},
      {Stack::vllm, "BF16 on Hopper", [](const Setup& s) { return is_hopper(s) && has_experts_in(s, Precision::bf16); },
       MoeBackend::triton, "fused_moe/oracle/unquantized.py (011fbfd): FlashInfer's are slower on Hopper"},
  };
  return kRows;
}

const std::vector<KernelHabit<AttentionBackend>>& attention_kernels() {
  static const std::vector<KernelHabit<AttentionBackend>> kRows = {
      {Stack::sglang, "attention on Blackwell", is_blackwell, AttentionBackend::trtllm_gen,
       "trtllm_mla and trtllm_mha on SM100, srt/arg_groups/model_overrides at 0bc6438"},
      {Stack::sglang, "attention on Hopper", is_hopper, AttentionBackend::fa3,
       "_get_default_attn_backend, srt/server_args.py"},
      {Stack::trtllm, "attention on Blackwell", is_blackwell, AttentionBackend::trtllm_gen,
       "its own generated kernels of SM100"},
      {Stack::trtllm, "latents in decode on Hopper", [](const Setup& s) { return is_hopper(s) && decodes_latents(s); },
       AttentionBackend::flashmla,
       "mUseGenFlashMLA, cpp/tensorrt_llm/thop/attentionOp.cpp; of an FP8 cache in FP8 arithmetic"},
      {Stack::trtllm, "attention before Blackwell", [](const Setup& s) { return is_hopper(s) || is_ampere(s); },
       AttentionBackend::xqa, "its own XQA and FMHA kernels"},
      {Stack::vllm, "attention on Blackwell", is_blackwell, AttentionBackend::trtllm_gen,
       "FlashInfer first in _get_backend_priorities, vllm/platforms/cuda.py (1c0d9ec)"},
      {Stack::vllm, "latents in FP8 in decode on Hopper",
       [](const Setup& s) { return is_hopper(s) && decodes_latents(s) && s.model.kv_cache != Precision::bf16; },
       AttentionBackend::flashmla, "behind FLASH_ATTN_MLA, which takes no FP8, in vllm/platforms/cuda.py (1c0d9ec)"},
      {Stack::vllm, "attention on Hopper", is_hopper, AttentionBackend::fa3,
       "FLASH_ATTN_MLA and FLASH_ATTN first in vllm/platforms/cuda.py (1c0d9ec)"},
      {Stack::vllm, "attention on Ampere", is_ampere, AttentionBackend::fa2,
       "FLASH_ATTN first in vllm/platforms/cuda.py (1c0d9ec)"},
  };
  return kRows;
}

// vLLM's select_mxfp4_moe_backend (fused_moe/oracle/mxfp4.py at 001eda3) goes through kernels with BF16 rows;
// VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8 asks for the others. SGLang's flashinfer_mxfp4_moe_precision has MXFP8 by
// default, and so have TensorRT-LLM's generated kernels.
Precision mxfp4_rows(const Setup& setup) {
  return setup.kernels().stack == Stack::vllm ? Precision::bf16 : Precision::fp8;
}

}  // namespace moeline::habits
