#include "moe/training_memory.hpp"

#include <algorithm>

#include "architecture/blocks.hpp"
#include "architecture/matrices.hpp"
#include "moe/kernels.hpp"
#include "moe/megatron.hpp"
#include "moe/memory.hpp"

namespace moeline {
namespace {

using kernels::kBf16;
using kernels::kFp32;
const double kScaledFp8 = activation_bytes(Precision::fp8);
constexpr double kE5M6 = 1.5;

// Columns of attention's tensors, all heads of the rank together.
struct Widths {
  explicit Widths(const LayerWork& work)
      : latents(work.model.q_lora_rank + work.model.kv_lora_rank + work.model.qk_rope_head_dim) {
    const LayerAttention a = attention_of_rank(work.content.attention, work.tp);
    qk = 1.0 * a.heads * a.qk_dim;
    v = 1.0 * a.heads * a.v_dim;
  }
  double latents, qk = 0, v = 0;
};

double saved_by_attention(const LayerWork& work) {
  const Architecture& a = work.model;
  const Widths w(work);
  const double hidden = a.hidden_size;
  const bool keeps_all = work.choices.recompute == Recompute::none;
  double per_token = 2 * hidden * kBf16 + w.latents * kBf16 + a.num_attention_heads * kFp32;
  per_token += w.v * (work.choices.narrow_activations ? kE5M6 : kBf16);
  if (keeps_all) per_token += (2 * hidden + w.latents) * kScaledFp8 + (2 * w.qk + w.v) * kBf16;
  if (work.kind == BlockKind::moe_layer) per_token += a.n_routed_experts * kFp32;
  return work.tokens() * per_token;
}

// `rows` through a gated FFN `width` wide.
double saved_by_ffn(const LayerWork& work, double rows, double width) {
  const bool keeps_all = work.choices.recompute == Recompute::none;
  const double gate_up = 2 * width * (work.choices.narrow_activations ? kScaledFp8 : kBf16);
  return rows * (work.model.hidden_size * kScaledFp8 + gate_up + (keeps_all ? width * kScaledFp8 : 0));
}

double saved_by_mlp(const LayerWork& work) {
  const Architecture& a = work.model;
  if (work.kind == BlockKind::dense_layer) return saved_by_ffn(work, work.tokens(), a.intermediate_size);
  const double shared = a.shared_width();
  return saved_by_ffn(work, work.load.rows, a.moe_intermediate_size) + saved_by_ffn(work, work.tokens(), shared);
}

double logits_bytes(const LayerWork& work) { return work.tokens() * work.model.vocab_size / work.tp * kBf16; }

// `gradients` 1 with those of each tensor.
double mlp_workspace(const LayerWork& work, double gradients) {
  const Architecture& a = work.model;
  const bool dense = work.kind == BlockKind::dense_layer;
  const double rows = dense ? work.tokens() : work.load.rows;
  const double width = dense ? 1.0 * a.intermediate_size / work.tp : a.moe_intermediate_size;
  const double ends = a.hidden_size * (kScaledFp8 + kBf16);
  return rows * (ends + (1 + gradients) * 2 * width * kBf16 + width * (kScaledFp8 + gradients * kBf16));
}

// Of one module, of whose matrices the rank has so much.
double megatron_bytes(const Module& module, double matrices) {
  const double both_ways = number_bytes(module.type) < kBf16 ? 2 * kScaledFp8 : 0;
  return matrices * (kBf16 + both_ways) + module.vectors * kBf16;
}

// Of one module. A share of a matrix between 1/tp and 1 is a part that each rank has whole, and 1/tp of the rest.
double repeated_parameters(const Module& module, double share, int tp) {
  const double whole = tp == 1 ? 1 : (share * tp - 1) / (tp - 1);
  return module.matrices * whole + module.vectors;
}

}  // namespace

StageParameters stage_parameters(const Architecture& model, std::span<const Block> blocks, const StageSplit& split) {
  StageParameters stage;
  for (const Module& module : modules_of(model, blocks)) {
    const bool routed = module.name == kRoutedExperts;
    const double count = module.count / (routed ? split.ep : 1);
    const double share = routed ? 1.0 / split.moe_tp : tensor_parallel_share(module, model, split.tp);
    const double matrices = module.matrices * share;
    if (!routed) stage.repeated += count * repeated_parameters(module, share, split.tp);
    const bool megatron = split.operators == TrainingOperators::megatron;
    (routed ? stage.experts : stage.replicated) += count * (matrices + module.vectors);
    (routed ? stage.experts_bytes : stage.replicated_bytes) +=
        count * (megatron ? megatron_bytes(module, matrices) : module.bytes());
  }
  return stage;
}

double gradient_bytes(const TrainingChoices& choices) { return choices.fp32_gradients ? kFp32 : kBf16; }

double optimizer_bytes(const TrainingChoices& choices, const Architecture& model) {
  const bool bf16_alone = std::min(number_bytes(model.weights), number_bytes(model.expert_weights)) >= kBf16;
  const bool keeps_rest = choices.by_megatron() && !choices.fp32_moments && bf16_alone;
  return (keeps_rest ? kFp32 - kBf16 : kFp32) + 2 * (choices.fp32_moments ? kFp32 : kBf16);
}

double update_bytes(const TrainingChoices& choices) {
  return choices.copies_moments && !choices.fp32_moments ? 2 * kFp32 : 0;
}

double saved_bytes(const LayerWork& work) {
  const double hidden = work.own_tokens() * work.model.hidden_size * kBf16;
  if (work.kind == BlockKind::embedding) return 0;  // the tokens themselves
  if (work.kind == BlockKind::head) return hidden + logits_bytes(work);
  if (work.kind == BlockKind::mtp) return 2 * hidden;
  if (work.choices.recompute == Recompute::full) return hidden;
  if (work.choices.by_megatron()) return megatron::saved_layer_bytes(work);
  return saved_by_attention(work) + saved_by_mlp(work);
}

double offloaded_bytes(const LayerWork& work) {
  const bool keeps_layers = work.choices.by_megatron() && work.choices.recompute != Recompute::full;
  return is_layer(work.kind) && keeps_layers ? megatron::offloaded_layer_bytes(work) : 0;
}

double pending_weight_bytes(const LayerWork& work) {
  const Architecture& a = work.model;
  const double hidden = a.hidden_size;
  if (work.kind == BlockKind::head) return logits_bytes(work) + work.tokens() * hidden * kBf16;
  if (work.kind == BlockKind::mtp) return work.tokens() * 3 * hidden * kBf16;
  if (!is_layer(work.kind)) return work.tokens() * hidden * kBf16;  // of the embedding
  if (work.choices.by_megatron()) return megatron::pending_layer_bytes(work);
  const Widths w(work);
  const double up_kv = 1.0 * a.num_attention_heads * a.qk_nope_head_dim + w.v;
  const double down = a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim;
  const double attention = 2 * hidden + w.v + w.qk + up_kv + w.latents + hidden + down;
  const auto of_ffn = [&](double rows, double width) { return rows * (2 * hidden + 3 * width); };
  double bytes = work.tokens() * attention;
  if (work.kind == BlockKind::dense_layer) {
    bytes += of_ffn(work.tokens(), a.intermediate_size);
  } else {
    bytes += of_ffn(work.load.rows, a.moe_intermediate_size);
    bytes += of_ffn(work.tokens(), a.shared_width());
  }
  return bytes * kScaledFp8;
}

double forward_workspace_bytes(const LayerWork& work) {
  if (!is_layer(work.kind)) return 0;
  const Widths w(work);
  const double attention = work.tokens() * (2 * w.qk + 2 * w.v) * kBf16 + megatron::exchanged_bytes(work, false);
  return std::max(attention, mlp_workspace(work, 0));
}

double backward_workspace_bytes(const LayerWork& work) {
  if (work.kind == BlockKind::head) return logits_bytes(work);
  if (!is_layer(work.kind)) return 0;
  const Widths w(work);
  double again = 0;  // what full recomputation brings back
  if (work.choices.recompute == Recompute::full) {
    LayerWork kept = work;
    kept.choices.recompute = Recompute::none;
    kept.choices.narrow_activations = false;
    again = saved_bytes(kept);
  }
  const double tensors = (4 * w.qk + 4 * w.v) * kBf16 + w.qk * kFp32;  // q, k, v, O, their gradients; dQ's accumulator
  const double attention = work.tokens() * tensors + megatron::exchanged_bytes(work, true);
  return again + std::max(attention, mlp_workspace(work, 1));
}

}  // namespace moeline
