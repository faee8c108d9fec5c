// Attention proper of Megatron's layers. Where cp ranks share sequences, each has two pieces of every one, which lie
// alike far from its ends, so that all have as many query-key pairs: s^2 / (2 cp) of a sequence of s tokens. Keys and
// values come block by block in a ring, each while the one before it is attended to (Transformer Engine's cp_comm_type
// p2p; arXiv 2310.01889), or are gathered at once (all_gather; Llama 3, arXiv 2407.21783, section 3.3.2).
#include <algorithm>

#include "moe/attention_core.hpp"
#include "moe/megatron.hpp"
#include "moe/megatron_kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline::megatron {
namespace {

using namespace kernels;
using namespace module_names;

Replicas context_group(const LayerWork& work) { return spaced(work.cp, work.tp, work.gpus_per_node); }

bool in_ring(const LayerWork& work) { return work.cp > 1 && work.context == ContextMode::ring; }
bool gathers(const LayerWork& work) { return work.cp > 1 && work.context == ContextMode::all_gather; }

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

Operator core_forward(const AttentionTensors& d, int parts) { return prefill_core(core_shape(d, parts), d.a.window); }

std::vector<Operator> core_backward(const AttentionTensors& d, int parts) {
  std::vector<Operator> ops = {
      elementwise("FlashAttention backward preprocess", d.t * d.out, 2),
      prefill_backward_core(core_shape(d, parts), d.a.window),
      memory(Family::streaming, "FlashAttention backward dQ to bf16", d.t * d.query * (kFp32 + kBf16))};
  // Query heads that share keys add up their gradients in FP32.
  if (d.a.heads > d.a.kv_heads && !d.latent()) {
    ops.push_back(
        memory(Family::streaming, "FlashAttention backward dK and dV to bf16", keys_and_values(d) * (kFp32 + kBf16)));
  }
  return ops;
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
    add_awaiting(list, before + block, core_backward(d, blocks));
    list.add(kCore, elementwise("add dQ", d.t * d.query, 3));
    add_awaiting(list, before + block + 1, {elementwise("add dK and dV", keys_and_values(d), 3)});
  }
}

void gather_keys(Kernels& list, const AttentionTensors& d) {
  const double numbers = keys_and_values(d) * d.work.cp;
  list.add(kKeyTransfer, {all_gather(numbers * kBf16, context_group(d.work)),
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
