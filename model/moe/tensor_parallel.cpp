#include "moe/tensor_parallel.hpp"

#include <algorithm>
#include <cmath>

#include "moe/collectives.hpp"
#include "moe/kernels.hpp"

namespace moeline {
namespace {

using kernels::kBf16;
using kernels::kFp32;

Replicas attention_group(const InferenceWork& work) { return consecutive(work.tp, work.gpus_per_node); }
Replicas experts_group(const InferenceWork& work) { return consecutive(work.ep * work.moe_tp, work.gpus_per_node); }

// The ranks of one index in the tensor parallel groups that share prompts.
Replicas context_group(const InferenceWork& work) { return spaced(work.cp, work.tp, work.gpus_per_node); }

double attention_bytes(const InferenceWork& work) { return work.tokens() * work.model.hidden_size * kBf16; }

}  // namespace

int scale_block(Precision weights) {
  switch (weights) {
    case Precision::fp8:
    case Precision::int4:
      return 128;
    case Precision::mxfp4:
      return 32;
    case Precision::nvfp4:
      return 16;
    case Precision::bf16:
    case Precision::fp8_tensor:
    case Precision::fp8_static:
      break;
  }
  return 1;
}

double columns_of_rank(double columns, double ranks, Precision weights) {
  const int block = weights == Precision::mxfp4 ? scale_block(weights) : 1;
  return columns / ranks == std::floor(columns / ranks / block) * block ? columns / ranks
                                                                        : std::ceil(columns / block / ranks) * block;
}

Replicas consecutive(int ranks, int gpus_per_node) { return spaced(ranks, 1, gpus_per_node); }

Replicas spaced(int ranks, int distance, int gpus_per_node) {
  const int span = ranks * distance;
  const int per_node = std::clamp(gpus_per_node / distance, 1, ranks);
  const double nodes = span > gpus_per_node ? std::max(1.0, 1.0 * distance / gpus_per_node) : 0;
  return {ranks, per_node, {span, nodes}};
}

Operator all_reduce_tokens(const InferenceWork& work) {
  const double bytes = attention_bytes(work);
  return work.most_custom_bytes > 0 ? custom_all_reduce(bytes, attention_group(work), work.most_custom_bytes)
                                    : all_reduce(bytes, attention_group(work));
}

bool norms_in_all_reduce(const InferenceWork& work) {
  return work.tp > 1 && attention_bytes(work) <= work.most_custom_bytes;
}

bool comes_normed(const InferenceWork& work) { return norms_in_all_reduce(work) && !work.scatters_tokens(); }

Operator scatter_tokens(const InferenceWork& work) {
  return reduce_scatter(attention_bytes(work), attention_group(work));
}

Operator gather_tokens(const InferenceWork& work) { return all_gather(attention_bytes(work), attention_group(work)); }

bool gathers_keys(const InferenceWork& work) { return work.cp > 1 && work.context != ContextMode::ring; }

Operator gather_keys(const InferenceWork& work, const LayerAttention& attention) {
  const Architecture& m = work.model;
  const double width = attention.kind == AttentionKind::mla
                           ? m.kv_lora_rank + m.qk_rope_head_dim
                           : 1.0 * attention.kv_heads * (attention.qk_dim + attention.v_dim);
  const Operator gather = all_gather(work.prefill.tokens() * work.cp * width * kBf16, context_group(work));
  return work.context == ContextMode::copy_engines ? without_sms(gather) : gather;
}

Operator gather_choices(const InferenceWork& work, double top_k) {
  return all_gather(work.prefill.tokens() * top_k * kFp32, attention_group(work));
}

Operator pass_keys_on(const InferenceWork& work, const LayerAttention& attention, double keys) {
  const double heads = attention.kind == AttentionKind::mla ? attention.heads : attention.kv_heads;
  Operator op = send(keys * heads * (attention.qk_dim + attention.v_dim) * kBf16, context_group(work).reach);
  op.beside = true;
  return op;
}

Operator gather_for_experts(const InferenceWork& work) {
  constexpr double kChoice = 8;  // an expert's number and weight
  const double token = work.model.expert_hidden_size() * activation_bytes(work.dispatch);
  return all_gather(work.all_tokens() * (token + kChoice * work.model.num_experts_per_tok), experts_group(work));
}

Operator scatter_from_experts(const InferenceWork& work) {
  return reduce_scatter(work.all_tokens() * work.model.expert_hidden_size() * kBf16, experts_group(work));
}

double stage_output_bytes(const InferenceWork& work) {
  return (1 + work.model.hc_mult) * attention_bytes(work) / work.tp;
}

Operator gather_stage_input(const InferenceWork& work) {
  return all_gather((1 + work.model.hc_mult) * attention_bytes(work), attention_group(work));
}

Operator gather_logits(const InferenceWork& work, double rows) {
  return all_gather(rows * work.model.vocab_size * kBf16, attention_group(work));
}

}  // namespace moeline
