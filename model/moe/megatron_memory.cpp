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

// A norm's input, and its output as those that take it keep it: so many bytes a number.
double norm_bytes(const Kept& k, double output_bytes) { return k.own * k.hidden * (kBf16 + output_bytes); }

// Of a norm that is a module of its own, and may be computed again.
double module_norm_bytes(const Kept& k, double output_bytes) {
  return norm_bytes(k, recomputes(k.work, &RecomputedModules::layernorm) ? 0 : output_bytes);
}

double attention_bytes(const Kept& k) {
  const double input = k.input_bytes(k.formats().attention_in);
  double bytes = 0;
  if (k.latent()) {
    const bool twice = input < kBf16 && k.work.model.q_lora_rank > 0;  // each projection has an FP8 copy of its own
    bytes += module_norm_bytes(k, twice ? 2 * input : input) + k.own * k.latents * kBf16;
    const double normed = k.own * k.latents * input;
    const double expanded = k.t * (2 * k.query + k.out) * kBf16;
    if (!recomputes(k.work, &RecomputedModules::mla_up_proj)) bytes += normed + expanded;
  } else {
    bytes += norm_bytes(k, input) + k.t * (k.query + k.key + k.value) * kBf16;
    if (k.work.model.qk_norm != QkNorm::none) bytes += k.t * (k.query + k.key) * kBf16;
  }
  bytes += k.t * k.out * kBf16;  // the projection casts it once more
  return bytes + k.t * k.a.heads * kFp32;
}

double ffn_bytes(const Kept& k, double rows, double width, Precision stored, bool keeps_activation) {
  const double gates = k.work.model.gated_ffn ? 2 : 1;
  return rows * width * (gates * kBf16 + (keeps_activation ? k.input_bytes(stored) : 0));
}

double dense_bytes(const Kept& k) {
  if (recomputes(k.work, &RecomputedModules::mlp)) return norm_bytes(k, 0);
  return norm_bytes(k, k.input_bytes(k.formats().dense)) +
         ffn_bytes(k, k.t, 1.0 * k.work.content.dense_width / k.work.tp, k.formats().dense, true);
}

// The normed input is kept in BF16 by the router and the shared experts.
double experts_bytes(const Kept& k) {
  const Architecture& m = k.work.model;
  const double rows = k.work.load.valid;
  double bytes = module_norm_bytes(k, kBf16) + k.own * m.n_routed_experts * (kFp32 + kMapByte);
  bytes += rows * k.hidden * k.input_bytes(k.formats().experts);
  bytes += ffn_bytes(k, rows, 1.0 * m.moe_intermediate_size / k.work.moe_tp, k.formats().experts,
                     !recomputes(k.work, &RecomputedModules::moe_act));
  if (m.n_shared_experts == 0) return bytes;
  return bytes + ffn_bytes(k, k.t, m.shared_width() / k.work.tp, k.formats().shared, true);
}

}  // namespace

double saved_layer_bytes(const LayerWork& work) {
  const Kept k(work);
  return attention_bytes(k) + (work.kind == BlockKind::moe_layer ? experts_bytes(k) : dense_bytes(k));
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
