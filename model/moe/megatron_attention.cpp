#include <algorithm>

#include "moe/attention_kernels.hpp"
#include "moe/megatron.hpp"
#include "moe/megatron_kernels.hpp"
#include "moe/module_names.hpp"

// Attention proper of Megatron's layers. Where cp ranks share sequences, each has two pieces of every one, which lie
// alike far from its ends, so that all have as many query-key pairs: s^2 / (2 cp) of a sequence of s tokens. Keys and
// values come block by block in a ring, each while the one before it is attended to (Transformer Engine's cp_comm_type
// p2p; arXiv 2310.01889), or are gathered at once (all_gather; Llama 3, arXiv 2407.21783, section 3.3.2).

namespace moeline::megatron {
namespace {

using namespace kernels;
using namespace module_names;

Replicas context_group(const LayerWork& work) { return spaced(work.cp, work.tp, work.gpus_per_node); }

bool in_ring(const LayerWork& work) { return work.cp > 1 && work.context == ContextMode::ring; }
bool gathers(const LayerWork& work) { return work.cp > 1 && work.context != ContextMode::ring; }

// Keys and values of the rank's tokens, or their gradients.
double keys_and_values(const AttentionTensors& d) {
  return d.latent() ? d.t * (d.query + d.out) : d.t * (d.key + d.value);
}

// One of as many parts of the keys: each query sees the same share of all of them on average.
AttentionShape core_shape(const AttentionTensors& d, int parts) {
  const double seq = d.work.seq_len, queries = seq / d.work.cp;
  return {.batch = d.t / queries,
          .heads = 1.0 * d.a.heads,
          .kv_heads = 1.0 * (d.latent() ? d.a.heads : d.a.kv_heads),
          .query_len = queries,
          .kv_len = seq / 2 / parts + queries / 2,
          .qk_dim = 1.0 * d.a.qk_dim,
          .v_dim = 1.0 * d.a.v_dim};
}

Operator core_forward(const AttentionTensors& d, int parts) {
  return by_cudnn(prefill_core(core_shape(d, parts), d.a.window));
}

// What stands around the core, the sums of its outputs' gradients and what is added up in FP32, is a part of it.
Operator core_backward(const AttentionTensors& d, int parts) {
  return by_cudnn(prefill_backward_core(core_shape(d, parts), d.a.window));
}

// To the next rank of the ring, beside what is launched after it. `tensors`: of the size of keys and values.
void pass_on(Kernels& list, const AttentionTensors& d, int tensors) {
  Operator op = send(tensors * keys_and_values(d) * kBf16, context_group(d.work).reach);
  op.beside = true;
  list.add(kKeyTransfer, op);
}

int sent_beside(Kernels& list) {
  return static_cast<int>(
      std::count_if(list.ops().begin(), list.ops().end(), [](const Operator& op) { return op.beside; }));
}

void add_awaiting(Kernels& list, int transfer, std::vector<Operator> ops) {
  ops.front().awaits = transfer;
  list.add(kCore, std::move(ops));
}

void ring_forward(Kernels& list, const AttentionTensors& d) {
  const int blocks = d.work.cp, before = sent_beside(list);
  for (int block = 1; block < blocks; ++block) pass_on(list, d, 1);
  list.add(kCore, core_forward(d, blocks));
  for (int block = 1; block < blocks; ++block) {
    add_awaiting(list, before + block, {core_forward(d, blocks)});
    list.add(kCore, elementwise("merge partial attention", d.t * d.out, 3));
  }
}

// The rank's own keys come last. With every block travels what the ranks before found of its gradients; the last
// message has these alone.
void ring_backward(Kernels& list, const AttentionTensors& d) {
  const int blocks = d.work.cp, before = sent_beside(list);
  pass_on(list, d, 1);
  list.add(kCore, core_backward(d, blocks));
  for (int block = 1; block < blocks; ++block) {
    pass_on(list, d, block + 1 < blocks ? 2 : 1);
    add_awaiting(list, before + block, {core_backward(d, blocks)});
    list.add(kCore, elementwise("add dQ", d.t * d.query, 3));
    add_awaiting(list, before + block + 1, {elementwise("add dK and dV", keys_and_values(d), 3)});
  }
}

void gather_keys(Kernels& list, const AttentionTensors& d) {
  const double numbers = keys_and_values(d) * d.work.cp;
  const Operator gather = all_gather(numbers * kBf16, context_group(d.work));
  const bool by_engines = d.work.context == ContextMode::copy_engines;
  list.add(kKeyTransfer, {by_engines ? without_sms(gather) : gather,
                          elementwise("keys and values in the order of tokens", numbers, 2)});
}

}  // namespace

double exchanged_bytes(const LayerWork& work, bool gradients) {
  if (work.cp == 1) return 0;
  const int blocks = in_ring(work) ? 2 : work.cp;
  return (gradients ? 2 : 1) * blocks * keys_and_values(AttentionTensors(work)) * kBf16;
}

void attend(Kernels& list, const AttentionTensors& d) {
  if (in_ring(d.work)) return ring_forward(list, d);
  if (gathers(d.work)) gather_keys(list, d);
  list.add(kCore, core_forward(d, 1));
}

void attend_backward(Kernels& list, const AttentionTensors& d) {
  if (in_ring(d.work)) return ring_backward(list, d);
  if (gathers(d.work)) gather_keys(list, d);
  list.add(kCore, core_backward(d, 1));
  if (!gathers(d.work)) return;
  const double numbers = keys_and_values(d) * d.work.cp;
  list.add(kKeyTransfer, {elementwise("dK and dV in the order of ranks", numbers, 2),
                          reduce_scatter(numbers * kBf16, context_group(d.work))});
}

}  // namespace moeline::megatron

// Attention of Megatron's layers: grouped-query attention, over all keys or a sliding window, and multi-head latent
// attention, whose projections into latents every tensor parallel rank has whole, for its own tokens.

namespace moeline::megatron {
namespace {

using namespace kernels;
using namespace module_names;

struct Attention : AttentionTensors {
  explicit Attention(const LayerWork& w)
      : AttentionTensors(w),
        q_lora(w.model.q_lora_rank),
        kv_lora(w.model.kv_lora_rank),
        rope(w.model.qk_rope_head_dim),
        up_kv(1.0 * a.heads * (w.model.qk_nope_head_dim + a.v_dim)) {}

  [[nodiscard]] LinearShape qkv() const { return {t, query + key + (a.keys_are_values ? 0 : value), hidden}; }
  [[nodiscard]] LinearShape output() const { return {t, hidden, out}; }
  // Of MLA. The first two are the rank's own tokens; without a latent of queries these are projected at once.
  [[nodiscard]] LinearShape down_q() const { return {own, q_lora, hidden}; }
  [[nodiscard]] LinearShape down_kv() const { return {own, kv_lora + rope, hidden}; }
  [[nodiscard]] LinearShape up_q() const { return {t, query, q_lora > 0 ? q_lora : hidden}; }
  [[nodiscard]] LinearShape up_kv_shape() const { return {t, up_kv, kv_lora}; }

  double q_lora, kv_lora, rope, up_kv;
};

bool norms_heads(const Attention& d) { return d.work.model.qk_norm != QkNorm::none; }

// Input and its norm's gradient in, gradient out, and the gradient that came by the residual added to it.
void norm_backward(Kernels& list, const Attention& d) {
  list.add(kNorms, {norm("RMSNorm backward", d.own, d.hidden, 3), small("accumulate dW of RMSNorm"),
                    elementwise("add residual's gradient", d.own * d.hidden, 3)});
}

void project_groups(Kernels& list, const Attention& d) {
  list.gather(kAttentionSum, d.hidden);
  list.forward(kQkv, "W_QKV", d.qkv());
  if (norms_heads(d)) {
    list.add(kAttentionNorms, {norm("RMSNorm of q heads", d.t, d.query, 2), norm("RMSNorm of k heads", d.t, d.key, 2)});
  }
  list.add(kRotary, {elementwise("rotary q", d.t * d.query, 2), elementwise("rotary k", d.t * d.key, 2)});
}

// From the latents, which are what a recomputation begins with.
std::vector<Operator> expand_latents(const Attention& d) {
  Kernels list(d.work, d.work.content.formats.attention_in);
  if (d.q_lora > 0) {
    list.add(kAttentionNorms, norm("RMSNorm q", d.own, d.q_lora, 2));
    list.gather(kAttentionSum, d.q_lora);
  } else {
    list.gather(kAttentionSum, d.hidden);
  }
  list.forward(d.q_lora > 0 ? kUpQ : kQAndDownKv, d.q_lora > 0 ? "W_UQ" : "W_Q", d.up_q());
  list.add(kAttentionNorms, norm("RMSNorm kv", d.own, d.kv_lora, 2));
  list.gather(kAttentionSum, d.kv_lora + d.rope);
  list.forward(kUpKv, "W_UKV", d.up_kv_shape());
  list.add(kRotary, {memory(Family::strided, "rotary q", d.t * d.a.heads * d.rope * 2 * kBf16),
                     elementwise("rotary k, into K and V", d.t * (d.query + d.out), 2)});
  return list.ops();
}

void project_latents(Kernels& list, const Attention& d) {
  if (d.q_lora > 0) list.forward(kDownQ, "W_DQ", d.down_q());
  list.forward(kDownKv, "W_DKV", d.down_kv());
  list.append(expand_latents(d));
}

void groups_backward(Kernels& list, const Attention& d) {
  list.add(kRotary, {elementwise("rotary dq", d.t * d.query, 2), elementwise("rotary dk", d.t * d.key, 2)});
  if (norms_heads(d)) {
    list.add(kAttentionNorms, {norm("RMSNorm of q heads backward", d.t, d.query, 3),
                               norm("RMSNorm of k heads backward", d.t, d.key, 3)});
  }
  list.add(kRotary, elementwise("join dQ, dK and dV", d.t * d.qkv().n, 2));
  list.gather_beside(kAttentionSum, d.hidden);
  list.input_gradient(kQkv, "W_QKV", d.qkv());
  list.scatter(kAttentionSum, d.hidden);
}

void latents_backward(Kernels& list, const Attention& d) {
  list.add(kRotary, {memory(Family::strided, "rotary dq", d.t * d.a.heads * d.rope * 2 * kBf16),
                     elementwise("rotary dk, from dK and dV", d.t * (d.query + d.out), 2)});
  list.gather_beside(kAttentionSum, d.kv_lora + d.rope);
  list.input_gradient(kUpKv, "W_UKV", d.up_kv_shape());
  list.scatter(kAttentionSum, d.kv_lora + d.rope);
  list.add(kAttentionNorms, norm("RMSNorm kv backward", d.own, d.kv_lora, 3));
  list.gather_beside(kAttentionSum, d.up_q().k);
  list.input_gradient(d.q_lora > 0 ? kUpQ : kQAndDownKv, d.q_lora > 0 ? "W_UQ" : "W_Q", d.up_q());
  list.scatter(kAttentionSum, d.up_q().k);
  if (d.q_lora > 0) {
    list.add(kAttentionNorms, norm("RMSNorm q backward", d.own, d.q_lora, 3));
    list.input_gradient(kDownQ, "W_DQ", d.down_q());
  }
  list.input_gradient(kDownKv, "W_DKV", d.down_kv());
  list.add(kDownKv, elementwise("add", d.own * d.hidden, 3));
}

}  // namespace

std::vector<Operator> attention_forward(const LayerWork& work) {
  const Attention d(work);
  Kernels list(work, work.content.formats.attention_in);
  list.append({layer_norm(work)});
  (d.latent() ? project_latents : project_groups)(list, d);
  attend(list, d);
  Kernels output(work, work.content.formats.attention_out);
  output.forward(kOutput, "W_O", d.output());
  output.scatter(kAttentionSum, d.hidden);
  output.append({residual_add(work), layer_norm(work)});
  if (work.kind == BlockKind::moe_layer) {
    route_forward(output, work);
    permute_to_send(output, work);
  }
  list.append(std::move(output.ops()));
  return list.ops();
}

std::vector<Operator> attention_backward_input(const LayerWork& work) {
  const Attention d(work);
  Kernels output(work, work.content.formats.attention_out);
  if (work.kind == BlockKind::moe_layer) route_backward(output, work);
  norm_backward(output, d);
  output.gather(kAttentionSum, d.hidden);
  output.input_gradient(kOutput, "W_O", d.output());
  Kernels list(work, work.content.formats.attention_in);
  list.ops() = std::move(output.ops());
  if (d.latent() && recomputes(d.work, &RecomputedModules::mla_up_proj)) list.recompute(expand_latents(d));
  if (recomputes(d.work, &RecomputedModules::core_attn)) {
    const std::size_t first = list.ops().size();
    attend(list, d);
    list.recompute_from(first);
  }
  attend_backward(list, d);
  // Before grouped-query attention it is a part of the linear layer.
  if (d.latent() && recomputes(d.work, &RecomputedModules::layernorm)) list.recompute({layer_norm(work)});
  (d.latent() ? latents_backward : groups_backward)(list, d);
  norm_backward(list, d);
  return list.ops();
}

std::vector<Operator> attention_backward_weight(const LayerWork& work) {
  const Attention d(work);
  Kernels output(work, work.content.formats.attention_out);
  output.weight_gradient(kOutput, "W_O", d.output());
  Kernels list(work, work.content.formats.attention_in);
  list.ops() = std::move(output.ops());
  if (!d.latent()) {
    list.weight_gradient(kQkv, "W_QKV", d.qkv());
    return list.ops();
  }
  list.weight_gradient(kUpKv, "W_UKV", d.up_kv_shape());
  list.weight_gradient(d.q_lora > 0 ? kUpQ : kQAndDownKv, d.q_lora > 0 ? "W_UQ" : "W_Q", d.up_q());
  list.weight_gradient(kDownKv, "W_DKV", d.down_kv());
  if (d.q_lora > 0) list.weight_gradient(kDownQ, "W_DQ", d.down_q());
  return list.ops();
}

}  // namespace moeline::megatron
