// What Megatron's layers keep for their backward pass.
#include "moe/megatron.hpp"
#include "moe/megatron_kernels.hpp"

namespace moeline::megatron {
namespace {

using kernels::kBf16;
using kernels::kFp32;

// Tensors of a layer on this rank, and bytes of a number of what its GEMMs take.
struct Kept : AttentionTensors {
  explicit Kept(const LayerWork& w)
      : AttentionTensors(w), latents(w.model.q_lora_rank + w.model.kv_lora_rank + w.model.qk_rope_head_dim) {}

  [[nodiscard]] double input_bytes(Precision stored) const { return activation_bytes(work.tensor_format(stored)); }
  [[nodiscard]] const LayerFormats& formats() const { return work.content.formats; }

  double latents;
};

// What the backward pass finds in memory, by the module that takes it as an input.
struct KeptBytes {
  double attn_norm = 0, qkv_linear = 0, core_attn = 0, attn_proj = 0;
  double mlp_norm = 0, expert_fc1 = 0, moe_act = 0;
  double rest = 0;  // of modules that have no name
};

struct OffloadableModule {
  bool OffloadedModules::*chosen;
  double KeptBytes::*bytes;
};
constexpr OffloadableModule kOffloadable[] = {
    {&OffloadedModules::attn_norm, &KeptBytes::attn_norm}, {&OffloadedModules::qkv_linear, &KeptBytes::qkv_linear},
    {&OffloadedModules::core_attn, &KeptBytes::core_attn}, {&OffloadedModules::attn_proj, &KeptBytes::attn_proj},
    {&OffloadedModules::mlp_norm, &KeptBytes::mlp_norm},   {&OffloadedModules::expert_fc1, &KeptBytes::expert_fc1},
    {&OffloadedModules::moe_act, &KeptBytes::moe_act}};

double hidden_states(const Kept& k, double number_bytes) { return k.own * k.hidden * number_bytes; }

// Of a norm that is a module of its own, and may be computed again.
double normed(const Kept& k, double number_bytes) {
  return recomputes(k.work, &RecomputedModules::layernorm) ? 0 : hidden_states(k, number_bytes);
}

void add_attention(const Kept& k, KeptBytes& kept) {
  const double input = k.input_bytes(k.formats().attention_in);
  const bool expanded = !k.latent() || !recomputes(k.work, &RecomputedModules::mla_up_proj);
  if (k.latent()) {
    const bool twice = input < kBf16 && k.work.model.q_lora_rank > 0;  // each projection has an FP8 copy of its own
    kept.attn_norm += hidden_states(k, kBf16);
    kept.qkv_linear += normed(k, twice ? 2 * input : input) + k.own * k.latents * kBf16;
    if (expanded) kept.qkv_linear += k.own * k.latents * input;
    if (expanded) kept.core_attn += k.t * (2 * k.query + k.out) * kBf16;
  } else {
    kept.qkv_linear += hidden_states(k, kBf16 + input);
    if (k.work.model.qk_norm != QkNorm::none) kept.rest += k.t * (k.query + k.key) * kBf16;
    kept.core_attn += k.t * (k.query + k.key + k.value) * kBf16;
  }
  kept.attn_proj += k.t * k.out * kBf16;  // which casts it once more
  kept.rest += k.t * k.a.heads * kFp32;
}

double gate_up_bytes(const Kept& k, double rows, double width) {
  return rows * width * (k.work.model.gated_ffn ? 2 : 1) * kBf16;
}

void add_dense(const Kept& k, KeptBytes& kept) {
  kept.rest += hidden_states(k, kBf16);
  if (recomputes(k.work, &RecomputedModules::mlp)) return;
  const double width = 1.0 * k.work.content.dense_width / k.work.tp;
  const double input = k.input_bytes(k.formats().dense);
  kept.rest += hidden_states(k, input) + gate_up_bytes(k, k.t, width) + k.t * width * input;
}

// The normed input is kept in BF16 by the router and the shared experts.
void add_experts(const Kept& k, KeptBytes& kept) {
  const Architecture& m = k.work.model;
  const double rows = k.work.load.valid, width = 1.0 * m.moe_intermediate_size / k.work.moe_tp;
  const double input = k.input_bytes(k.formats().experts);
  kept.mlp_norm += hidden_states(k, kBf16);
  kept.rest += normed(k, kBf16) + k.own * m.n_routed_experts * (kFp32 + kMapByte);
  kept.expert_fc1 += rows * k.hidden * input;
  kept.moe_act += gate_up_bytes(k, rows, width);
  if (!recomputes(k.work, &RecomputedModules::moe_act)) kept.rest += rows * width * input;
  if (m.n_shared_experts == 0) return;
  const double shared = 1.0 * m.shared_width() / k.work.tp;
  kept.rest += gate_up_bytes(k, k.t, shared) + k.t * shared * k.input_bytes(k.formats().shared);
}

KeptBytes kept_bytes(const LayerWork& work) {
  const Kept k(work);
  KeptBytes kept;
  add_attention(k, kept);
  work.kind == BlockKind::moe_layer ? add_experts(k, kept) : add_dense(k, kept);
  return kept;
}

}  // namespace

double saved_layer_bytes(const LayerWork& work) {
  const KeptBytes kept = kept_bytes(work);
  double bytes = kept.rest;
  for (const OffloadableModule& module : kOffloadable) bytes += kept.*module.bytes;
  return bytes;
}

double offloaded_layer_bytes(const LayerWork& work) {
  const KeptBytes kept = kept_bytes(work);
  double bytes = 0;
  for (const OffloadableModule& module : kOffloadable) {
    if (work.choices.offload.*module.chosen) bytes += kept.*module.bytes;
  }
  return bytes;
}

double pending_layer_bytes(const LayerWork& work) {
  double bytes = 0;
  const std::vector<Operator> feed_forward = work.kind == BlockKind::moe_layer ? megatron::experts_backward_weight(work)
                                                                               : megatron::dense_backward_weight(work);
  for (const auto& ops : {megatron::attention_backward_weight(work), feed_forward}) {
    for (const Operator& op : ops) bytes += (op.m + op.n) * op.k * activation_bytes(precision_of(op));
  }
  return bytes;
}

}  // namespace moeline::megatron
