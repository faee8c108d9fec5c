// Multi-head latent attention and the router of MoE layers. Symbols as in the DeepSeek-V2 paper: W_DQ and W_UQ project
// queries down and up, W_DKV and W_UKV keys and values, W_O the output.
#include "moe/attention_kernels.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/training.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

struct Mla {
  explicit Mla(const LayerWork& work)
      : t(work.tokens()),
        seq(work.seq_len),
        hidden(work.model.hidden_size),
        experts(work.model.n_routed_experts),
        heads(work.model.num_attention_heads),
        q_lora(work.model.q_lora_rank),
        kv_lora(work.model.kv_lora_rank),
        nope(work.model.qk_nope_head_dim),
        rope(work.model.qk_rope_head_dim),
        v(work.model.v_head_dim),
        down_kv(kv_lora + rope),
        up_q(heads * (nope + rope)),
        up_kv(heads * (nope + v)),
        out(heads * v) {}

  double t, seq, hidden, experts, heads, q_lora, kv_lora, nope, rope, v;
  double down_kv;  // columns of W_DKV, the shared rotary key included
  double up_q, up_kv, out;
};

class List : public KernelList {
 public:
  explicit List(const LayerWork& work) : d(work) {}

  void smalls(const char* module, std::initializer_list<const char*> names) {
    for (const char* name : names) add(module, small(name));
  }

  // Queries, keys and values from their latent vectors; recomputed in the backward pass.
  void up_projections() {
    add(kAttentionNorms, {norm("RMSNorm q", d.t, d.q_lora, 2), elementwise("copy q latent", d.t * d.q_lora, 2),
                          norm("RMSNorm kv", d.t, d.kv_lora, 2)});
  }
  void project_up() {
    add(kUpQ, {cast("cast q latent to fp8", d.t, d.q_lora), transpose_scales(d.t, d.q_lora),
               gemm(Family::gemm_fp8, "W_UQ fprop", d.t, d.up_q, d.q_lora)});
    add(kUpKv, {cast("cast kv latent to fp8", d.t, d.kv_lora), transpose_scales(d.t, d.kv_lora),
                gemm(Family::gemm_fp8, "W_UKV fprop", d.t, d.up_kv, d.kv_lora)});
    add(kRotary, {small("rotary k"), elementwise("copy k_nope into K", d.t * d.heads * d.nope, 2),
                  memory(Family::strided, "broadcast k_rope to heads", d.t * d.heads * d.rope * kBf16),
                  memory(Family::strided, "rotary q", d.t * d.heads * d.rope * 2 * kBf16)});
  }

  [[nodiscard]] AttentionShape prompt() const {
    return {.batch = d.t / d.seq,
            .heads = d.heads,
            .kv_heads = d.heads,
            .query_len = d.seq,
            .kv_len = d.seq,
            .qk_dim = d.nope + d.rope,
            .v_dim = d.v};
  }

  void top_k() { add(kRouterChoice, routing_scan("top-k", d.t * d.experts)); }

  void finalize_norm_backward(const char* module) {
    smalls(module, {"RMSNorm backward finalize", "accumulate dW of RMSNorm"});
  }

  Mla d;
};

void router_forward(List& list) {
  const Mla& d = list.d;
  list.add(kRouterGate, gemm(Family::gemm_bf16, "router gate fprop", d.t, d.experts, d.hidden));
  list.smalls(kRouterChoice, {"normal", "sigmoid", "sum", "div", "add bias", "top-2 sum and group index", "copy",
                              "fill", "scatter", "copy", "copy", "masked fill"});
  list.top_k();
  list.smalls(kRouterChoice, {"floor div", "unique group indices", "gather", "fill", "fill", "add", "scatter add",
                              "mul", "to float", "sum", "clamp", "add", "add", "sum", "add", "div"});
  list.top_k();
  list.smalls(kRouterChoice, {"clear", "sum", "clear", "aux loss counts", "mul", "sum", "scale"});
}

void router_backward(List& list) {
  const Mla& d = list.d;
  list.smalls(kRouterChoice, {"ones", "sum", "scale", "mul", "fill", "expand",           "div",     "div",  "neg",
                              "mul",  "div", "sum",   "add", "fill", "scatter",          "div",     "div",  "neg",
                              "mul",  "div", "sum",   "add", "add",  "sigmoid backward", "to bf16", "clear"});
  list.add(kRouterGate, {gemm(Family::gemm_bf16, "router gate dgrad", d.t, d.hidden, d.experts),
                         gemm(Family::gemm_bf16, "router gate wgrad", d.experts, d.hidden, d.t)});
}

}  // namespace

std::vector<Operator> attention_forward(const LayerWork& work) {
  List list(work);
  const Mla& d = list.d;
  const bool routes = work.kind == BlockKind::moe_layer;
  list.add(kNorms, norm("RMSNorm and residual add", d.t, d.hidden, 4));
  list.add(kDownQ, {cast("cast x to fp8", d.t, d.hidden), transpose_scales(d.t, d.hidden),
                    gemm(Family::gemm_fp8, "W_DQ fprop", d.t, d.q_lora, d.hidden)});
  list.add(kDownKv, {cast("cast x to fp8", d.t, d.hidden), transpose_scales(d.t, d.hidden),
                     gemm(Family::gemm_fp8, "W_DKV fprop", d.t, d.down_kv, d.hidden)});
  list.smalls(kCore, {"cu_seqlens q", "cu_seqlens k"});
  list.up_projections();
  list.add(kAttentionNorms, elementwise("copy kv latent", d.t * d.kv_lora, 2));
  list.project_up();
  list.add(kCore, {prefill_core(list.prompt()),
                   stored(memory(Family::recode_12bit, "save O in 12-bit E5M6", d.t * d.out * (kBf16 + 1.5)))});
  list.add(kOutput,
           {cast("cast O to fp8", d.t, d.out), transpose_scales(d.t, d.out),
            gemm(Family::gemm_fp8, "W_O fprop", d.t, d.hidden, d.out), elementwise("scale", d.t * d.hidden, 2)});
  list.add(kNorms, norm("RMSNorm and residual add", d.t, d.hidden, 4));
  if (routes) router_forward(list);
  list.add(routes ? kDispatchInput : kDenseGateUp, cast("cast dispatch input to fp8", d.t, d.hidden));
  return list.ops();
}

std::vector<Operator> attention_backward_input(const LayerWork& work) {
  List list(work);
  const Mla& d = list.d;
  if (work.kind == BlockKind::moe_layer) router_backward(list);
  list.add(kNorms, {elementwise("add", d.t * d.hidden, 3), norm("RMSNorm backward", d.t, d.hidden, 5)});
  list.finalize_norm_backward(kNorms);
  list.add(kOutput, elementwise("scale", d.t * d.hidden, 2));
  list.add(kCore, stored(memory(Family::recode_12bit, "restore O from 12-bit E5M6", d.t * d.out * (kBf16 + 1.5))));
  list.add(kOutput, {cast("cast dY to fp8", d.t, d.hidden), transpose_weights("transpose W_O", d.hidden * d.out),
                     transpose_scales(d.t, d.hidden), gemm(Family::gemm_fp8, "W_O dgrad", d.t, d.out, d.hidden),
                     cast_transpose("O per channel", d.t, d.out), cast_transpose("dY per channel", d.t, d.hidden)});

  const std::size_t first_recomputed = list.ops().size();
  list.up_projections();
  list.project_up();
  for (std::size_t i = first_recomputed; i < list.ops().size(); ++i) list.ops()[i] = recomputed(list.ops()[i]);

  list.add(kCore, {memory(Family::streaming, "FlashAttention backward preprocess",
                          d.t * (2 * d.out * kBf16 + d.up_q * kFp32)),  // dO . O, clear dQ accumulator
                   prefill_backward_core(list.prompt()),
                   memory(Family::streaming, "FlashAttention backward dQ to bf16", d.t * d.up_q * (kFp32 + kBf16))});
  list.add(kRotary, memory(Family::strided, "rotary dq", d.t * d.heads * d.rope * 2 * kBf16));
  list.add(kUpQ, {transpose_weights("transpose W_UQ", d.q_lora * d.up_q), cast("cast dq to fp8", d.t, d.up_q),
                  transpose_scales(d.t, d.up_q), gemm(Family::gemm_fp8, "W_UQ dgrad", d.t, d.q_lora, d.up_q)});
  list.add(kRotary,
           {elementwise("sum dk_rope over heads", d.t * d.heads * d.rope, 1), small("rotary dk"),
            elementwise("copy dk_nope", d.t * d.heads * d.nope, 2), elementwise("copy dv", d.t * d.heads * d.v, 2)});
  list.add(kUpKv,
           {transpose_weights("transpose W_UKV", d.kv_lora * d.up_kv), cast("cast dkv to fp8", d.t, d.up_kv),
            transpose_scales(d.t, d.up_kv), gemm(Family::gemm_fp8, "W_UKV dgrad", d.t, d.kv_lora, d.up_kv),
            cast_transpose("dkv per channel", d.t, d.up_kv), cast_transpose("kv latent per channel", d.t, d.kv_lora)});
  list.add(kUpQ,
           {cast_transpose("dq per channel", d.t, d.up_q), cast_transpose("q latent per channel", d.t, d.q_lora)});
  list.add(kAttentionNorms, norm("RMSNorm kv backward", d.t, d.kv_lora, 3));
  list.finalize_norm_backward(kAttentionNorms);
  list.add(kAttentionNorms, norm("RMSNorm q backward", d.t, d.q_lora, 3));
  list.finalize_norm_backward(kAttentionNorms);
  list.smalls(kAttentionNorms, {"fill", "copy", "fill", "copy", "add"});

  list.add(kNorms, recomputed(norm("RMSNorm", d.t, d.hidden, 2)));
  list.add(kDownKv,
           {cast("cast dkv latent to fp8", d.t, d.down_kv), transpose_weights("transpose W_DKV", d.down_kv * d.hidden),
            transpose_scales(d.t, d.down_kv), gemm(Family::gemm_fp8, "W_DKV dgrad", d.t, d.hidden, d.down_kv),
            cast_transpose("x per channel", d.t, d.hidden), cast_transpose("dkv latent per channel", d.t, d.down_kv)});
  list.add(kDownQ,
           {cast("cast dq latent to fp8", d.t, d.q_lora), transpose_weights("transpose W_DQ", d.q_lora * d.hidden),
            transpose_scales(d.t, d.q_lora), gemm(Family::gemm_fp8, "W_DQ dgrad", d.t, d.hidden, d.q_lora),
            cast_transpose("x per channel", d.t, d.hidden), cast_transpose("dq latent per channel", d.t, d.q_lora)});
  list.add(kNorms, {elementwise("add", d.t * d.hidden, 3), norm("RMSNorm backward", d.t, d.hidden, 4)});
  list.finalize_norm_backward(kNorms);
  return list.ops();
}

std::vector<Operator> attention_backward_weight(const LayerWork& work) {
  const Mla d(work);
  std::vector<Operator> ops = {in(kOutput, gemm(Family::gemm_fp8_wgrad, "W_O wgrad", d.hidden, d.out, d.t)),
                               in(kUpKv, gemm(Family::gemm_fp8_wgrad, "W_UKV wgrad", d.up_kv, d.kv_lora, d.t)),
                               in(kUpQ, gemm(Family::gemm_fp8_wgrad, "W_UQ wgrad", d.up_q, d.q_lora, d.t)),
                               in(kDownKv, gemm(Family::gemm_fp8_wgrad, "W_DKV wgrad", d.down_kv, d.hidden, d.t)),
                               in(kDownQ, gemm(Family::gemm_fp8_wgrad, "W_DQ wgrad", d.q_lora, d.hidden, d.t))};
  for (Operator& op : ops) op.parallel = true;
  return ops;
}

}  // namespace moeline
