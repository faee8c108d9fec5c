#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/training.hpp"

namespace moeline {

// Shared and routed experts. Rows: token-expert pairs of this rank's experts, padded to whole GEMM tiles.

namespace {

using namespace kernels;
using namespace module_names;

struct Ffn {
  explicit Ffn(const LayerWork& work)
      : t(work.tokens()),
        hidden(work.model.hidden_size),
        ffn(work.model.moe_intermediate_size),
        shared(work.model.shared_width()),
        rows(work.load.rows),
        valid_rows(valid_share(work.load, work.load.rows)),
        received(work.load.received),
        experts(work.local_experts()) {}

  double t, hidden;
  double ffn;               // of one routed expert
  double shared;            // of the shared experts together
  double rows, valid_rows;  // and what share of them is no padding
  double received, experts;
};

// A product over the rows of experts.
Operator over_rows(const Ffn& d, Operator op) {
  op.padding_flops = op.flops * (1 - d.valid_rows);
  return op;
}

// FP8 rows with their scales, from one per received token to one per token and expert.
Operator expand(const char* name, const Ffn& d) {
  return memory(Family::streaming, name, (d.received + d.rows) * d.hidden * (kFp8 + kFp32 / kScaleBlock));
}

Operator reduce(const char* name, const Ffn& d) {
  return memory(Family::streaming, name, (d.received + d.rows) * d.hidden * kBf16);
}

Operator index_rows(Family family, const char* name, const Ffn& d) {
  Operator op = memory(family, name, 0);
  op.items = d.received;
  op.blocks = static_cast<int>(d.experts);
  return op;
}

// One GEMM per expert; how the rows split over the experts is unknown, so evenly.
void expert_weight_gradients(KernelList& list, const char* module, const char* name, double m, double n, const Ffn& d) {
  for (int expert = 0; expert < static_cast<int>(d.experts); ++expert) {
    Operator op = over_rows(d, gemm(Family::gemm_fp8_wgrad, name, m, n, d.rows / d.experts));
    op.parallel = true;
    list.add(module, op);
  }
}

}  // namespace

std::vector<Operator> experts_forward(const LayerWork& work) {
  const Ffn d(work);
  KernelList list;
  list.add(kSharedGateUp, {transpose_scales(d.t, d.hidden),
                           gemm(Family::gemm_fp8, "shared gate_up fprop", d.t, 2 * d.shared, d.hidden)});
  list.add(kPermutation, {index_rows(Family::count_rows, "count rows per expert", d),
                          index_rows(Family::map_rows, "map tokens to rows", d), expand("expand tokens to rows", d)});
  list.add(
      kExpertGateUp,
      {transpose_weights("transpose expert gate_up weights", d.experts * 2 * d.ffn * d.hidden),
       transpose_scales(d.rows, d.hidden),
       over_rows(d, gemm(Family::gemm_fp8_grouped, "expert gate_up fprop", d.rows, 2 * d.ffn, d.hidden, d.experts))});
  list.add(kExpertActivation, {small("convert weights of tokens"),
                               memory(Family::swiglu, "SwiGLU, weight and cast", d.rows * d.ffn * (2 * kBf16 + kFp8))});
  list.add(kExpertDown,
           {transpose_weights("transpose expert down weights", d.experts * d.hidden * d.ffn),
            transpose_scales(d.rows, d.ffn),
            over_rows(d, gemm(Family::gemm_fp8_grouped, "expert down fprop", d.rows, d.hidden, d.ffn, d.experts))});
  list.add(kPermutation, reduce("reduce rows to tokens", d));
  list.add(kSharedActivation, memory(Family::swiglu, "shared SwiGLU and cast", d.t * d.shared * (2 * kBf16 + kFp8)));
  list.add(kSharedDown,
           {transpose_scales(d.t, d.shared), gemm(Family::gemm_fp8, "shared down fprop", d.t, d.hidden, d.shared)});
  list.add(kExpertActivation, stored(cast("save expert gate_up output in fp8", d.rows, 2 * d.ffn)));
  list.add(kSharedActivation, stored(cast("save shared gate_up output in fp8", d.t, 2 * d.shared)));
  return list.ops();
}

std::vector<Operator> experts_backward_input(const LayerWork& work) {
  const Ffn d(work);
  KernelList list;
  list.add(kSharedActivation, stored(cast("restore shared gate_up output", d.t, 2 * d.shared)));
  list.add(kSharedDown,
           {transpose_weights("transpose shared down weight", d.hidden * d.shared), transpose_scales(d.t, d.hidden),
            gemm(Family::gemm_fp8, "shared down dgrad", d.t, d.shared, d.hidden),
            cast_transpose("dY per channel", d.t, d.hidden)});
  list.add(
      kSharedActivation,
      {recomputed(memory(Family::swiglu, "shared SwiGLU and per-channel cast", d.t * d.shared * (2 * kBf16 + kFp8))),
       memory(Family::swiglu, "shared SwiGLU backward", d.t * d.shared * 5 * kBf16)});
  list.add(kExpertActivation, stored(cast("restore expert gate_up output", d.rows, 2 * d.ffn)));
  list.add(kPermutation, expand("expand dY to rows", d));
  list.add(kExpertDown,
           {transpose_scales(d.rows, d.hidden),
            over_rows(d, gemm(Family::gemm_fp8_grouped, "expert down dgrad", d.rows, d.ffn, d.hidden, d.experts))});
  list.add(kExpertActivation, {memory(Family::swiglu, "SwiGLU forward and backward", d.rows * d.ffn * 6 * kBf16),
                               memory(Family::swiglu, "gradient of token weights", d.rows * d.ffn * 2 * kBf16)});
  list.add(kExpertDown, cast_transpose("SwiGLU output per channel", d.rows, d.ffn));
  list.add(kExpertActivation, small("convert weights of tokens"));
  list.add(kNorms, recomputed(norm("RMSNorm", d.t, d.hidden, 4)));
  list.add(kSharedGateUp, cast("cast x to fp8", d.t, d.hidden));
  list.add(
      kExpertGateUp,
      {cast("cast d(gate_up) to fp8", d.rows, 2 * d.ffn), transpose_scales(d.rows, 2 * d.ffn),
       over_rows(d, gemm(Family::gemm_fp8_grouped, "expert gate_up dgrad", d.rows, d.hidden, 2 * d.ffn, d.experts))});
  list.add(kPermutation, reduce("reduce dX to tokens", d));
  list.add(kExpertGateUp, cast_transpose("d(gate_up) per channel", d.rows, 2 * d.ffn));
  list.add(kSharedGateUp,
           {cast("restore shared x", d.t, d.hidden),
            transpose_weights("transpose shared gate_up weight", 2 * d.shared * d.hidden),
            cast("cast shared d(gate_up) to fp8", d.t, 2 * d.shared), transpose_scales(d.t, 2 * d.shared),
            gemm(Family::gemm_fp8, "shared gate_up dgrad", d.t, d.hidden, 2 * d.shared),
            cast_transpose("shared d(gate_up) per channel", d.t, 2 * d.shared),
            cast_transpose("x per channel", d.t, d.hidden)});
  return list.ops();
}

std::vector<Operator> experts_backward_weight(const LayerWork& work) {
  const Ffn d(work);
  KernelList list;
  list.add(kSharedDown, gemm(Family::gemm_fp8_wgrad, "shared down wgrad", d.hidden, d.shared, d.t));
  list.add(kExpertDown, memory(Family::requantize, "requantize dY per channel", d.rows * d.hidden * 2 * kFp8));
  expert_weight_gradients(list, kExpertDown, "expert down wgrad", d.hidden, d.ffn, d);
  list.add(kExpertGateUp, memory(Family::requantize, "requantize x per channel", d.rows * d.hidden * 2 * kFp8));
  expert_weight_gradients(list, kExpertGateUp, "expert gate_up wgrad", 2 * d.ffn, d.hidden, d);
  list.add(kSharedGateUp, gemm(Family::gemm_fp8_wgrad, "shared gate_up wgrad", 2 * d.shared, d.hidden, d.t));
  return list.ops();
}

// What a model has besides MoE layers: dense layers, embedding, LM head with its loss, and what an MTP module puts
// before its layer. Kernels as in training_experts.cpp; embedding, head and MTP projection stay in BF16 (DeepSeek-V3,
// section 3.3.1). No published profile shows them.

namespace {

using namespace kernels;
using namespace module_names;

constexpr double kAccumulate = 2 * kFp32;  // a gradient is read, added to and written

struct Sizes {
  explicit Sizes(const LayerWork& work)
      : t(work.tokens()),
        hidden(work.model.hidden_size),
        ffn(work.model.intermediate_size),
        vocabulary(work.model.vocab_size) {}
  double t, hidden, ffn, vocabulary;
};

// Dense BF16; weight gradients are added to FP32 ones.
Operator bf16_wgrad(const char* name, double m, double n, double k) {
  Operator op = gemm(Family::gemm_bf16, name, m, n, k);
  op.bytes = kBf16 * (m + n) * k + kAccumulate * m * n;
  op.parallel = true;
  return op;
}

Operator gather(const Sizes& d) { return in(kEmbedding, elementwise("gather embeddings", d.t * d.hidden, 2)); }

Operator scatter(const Sizes& d) {
  const double bytes = d.t * d.hidden * (kBf16 + kAccumulate);
  return in(kEmbedding, memory(Family::streaming, "scatter embedding gradients", bytes));
}

}  // namespace

std::vector<Operator> dense_forward(const LayerWork& work) {
  const Sizes d(work);
  KernelList list;
  list.add(kDenseGateUp,
           {transpose_scales(d.t, d.hidden), gemm(Family::gemm_fp8, "dense gate_up fprop", d.t, 2 * d.ffn, d.hidden)});
  list.add(kDenseActivation, memory(Family::swiglu, "dense SwiGLU and cast", d.t * d.ffn * (2 * kBf16 + kFp8)));
  list.add(kDenseDown,
           {transpose_scales(d.t, d.ffn), gemm(Family::gemm_fp8, "dense down fprop", d.t, d.hidden, d.ffn)});
  list.add(kDenseActivation, stored(cast("save dense gate_up output in fp8", d.t, 2 * d.ffn)));
  return list.ops();
}

std::vector<Operator> dense_backward_input(const LayerWork& work) {
  const Sizes d(work);
  KernelList list;
  list.add(kDenseActivation, stored(cast("restore dense gate_up output", d.t, 2 * d.ffn)));
  list.add(kDenseDown,
           {cast("cast dY to fp8", d.t, d.hidden), transpose_weights("transpose dense down weight", d.hidden * d.ffn),
            transpose_scales(d.t, d.hidden), gemm(Family::gemm_fp8, "dense down dgrad", d.t, d.ffn, d.hidden),
            cast_transpose("dY per channel", d.t, d.hidden)});
  list.add(kDenseActivation,
           {recomputed(memory(Family::swiglu, "dense SwiGLU and per-channel cast", d.t * d.ffn * (2 * kBf16 + kFp8))),
            memory(Family::swiglu, "dense SwiGLU backward", d.t * d.ffn * 5 * kBf16)});
  list.add(kNorms, recomputed(norm("RMSNorm", d.t, d.hidden, 4)));
  list.add(kDenseGateUp, {transpose_weights("transpose dense gate_up weight", 2 * d.ffn * d.hidden),
                          cast("cast dense d(gate_up) to fp8", d.t, 2 * d.ffn), transpose_scales(d.t, 2 * d.ffn),
                          gemm(Family::gemm_fp8, "dense gate_up dgrad", d.t, d.hidden, 2 * d.ffn),
                          cast_transpose("dense d(gate_up) per channel", d.t, 2 * d.ffn),
                          cast_transpose("x per channel", d.t, d.hidden)});
  return list.ops();
}

std::vector<Operator> dense_backward_weight(const LayerWork& work) {
  const Sizes d(work);
  return {in(kDenseDown, gemm(Family::gemm_fp8_wgrad, "dense down wgrad", d.hidden, d.ffn, d.t)),
          in(kDenseGateUp, gemm(Family::gemm_fp8_wgrad, "dense gate_up wgrad", 2 * d.ffn, d.hidden, d.t))};
}

std::vector<Operator> embedding_forward(const LayerWork& work) { return {gather(Sizes(work))}; }

std::vector<Operator> embedding_weight(const LayerWork& work) { return {scatter(Sizes(work))}; }

std::vector<Operator> head_forward(const LayerWork& work) {
  const Sizes d(work);
  return {in(kNorms, norm("RMSNorm", d.t, d.hidden, 2)),
          in(kHead, gemm(Family::gemm_bf16, "LM head fprop", d.t, d.vocabulary, d.hidden)),
          in(kLoss, elementwise("cross entropy", d.t * d.vocabulary, 1))};
}

std::vector<Operator> head_backward_input(const LayerWork& work) {
  const Sizes d(work);
  KernelList list;
  list.add(kLoss, elementwise("cross entropy backward", d.t * d.vocabulary, 2));
  list.add(kHead, gemm(Family::gemm_bf16, "LM head dgrad", d.t, d.hidden, d.vocabulary));
  list.add(kNorms, {norm("RMSNorm backward", d.t, d.hidden, 3), small("RMSNorm backward finalize"),
                    small("accumulate dW of RMSNorm")});
  return list.ops();
}

std::vector<Operator> head_weight(const LayerWork& work) {
  const Sizes d(work);
  return {in(kHead, bf16_wgrad("LM head wgrad", d.vocabulary, d.hidden, d.t))};
}

// Token embedding and hidden state, each normed, concatenated and projected (DeepSeek-V3, section 2.2).
std::vector<Operator> mtp_forward(const LayerWork& work) {
  const Sizes d(work);
  KernelList list;
  list.add(kEmbedding, gather(d));
  list.add(kMtpProjection, {norm("RMSNorm embedding", d.t, d.hidden, 2), norm("RMSNorm hidden state", d.t, d.hidden, 2),
                            gemm(Family::gemm_bf16, "MTP projection fprop", d.t, d.hidden, 2 * d.hidden)});
  return list.ops();
}

std::vector<Operator> mtp_backward_input(const LayerWork& work) {
  const Sizes d(work);
  KernelList list;
  list.add(kMtpProjection, {gemm(Family::gemm_bf16, "MTP projection dgrad", d.t, 2 * d.hidden, d.hidden),
                            norm("RMSNorm embedding backward", d.t, d.hidden, 3),
                            norm("RMSNorm hidden state backward", d.t, d.hidden, 3), small("accumulate dW of RMSNorm"),
                            small("accumulate dW of RMSNorm"), elementwise("add", d.t * d.hidden, 3)});
  return list.ops();
}

std::vector<Operator> mtp_weight(const LayerWork& work) {
  const Sizes d(work);
  return {in(kMtpProjection, bf16_wgrad("MTP projection wgrad", d.hidden, 2 * d.hidden, d.t)), scatter(d)};
}

}  // namespace moeline
