// What a model has besides MoE layers: dense layers, embedding, LM head with its loss, and what an MTP module puts
// before its layer. Kernels as in training_experts.cpp; embedding, head and MTP projection stay in BF16 (DeepSeek-V3,
// section 3.3.1). No published profile shows them.
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/training.hpp"

namespace moeline {
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
           {small("transpose scales"), gemm(Family::gemm_fp8, "dense gate_up fprop", d.t, 2 * d.ffn, d.hidden)});
  list.add(kDenseActivation, memory(Family::swiglu, "dense SwiGLU and cast", d.t * d.ffn * (2 * kBf16 + kFp8)));
  list.add(kDenseDown, {small("transpose scales"), gemm(Family::gemm_fp8, "dense down fprop", d.t, d.hidden, d.ffn)});
  list.add(kDenseActivation, stored(cast("save dense gate_up output in fp8", d.t, 2 * d.ffn)));
  return list.ops();
}

std::vector<Operator> dense_backward_input(const LayerWork& work) {
  const Sizes d(work);
  KernelList list;
  list.add(kDenseActivation, stored(cast("restore dense gate_up output", d.t, 2 * d.ffn)));
  list.add(kDenseDown,
           {cast("cast dY to fp8", d.t, d.hidden), transpose_weights("transpose dense down weight", d.hidden * d.ffn),
            small("transpose scales"), gemm(Family::gemm_fp8, "dense down dgrad", d.t, d.ffn, d.hidden),
            cast_transpose("dY per channel", d.t, d.hidden)});
  list.add(kDenseActivation,
           {recomputed(memory(Family::swiglu, "dense SwiGLU and per-channel cast", d.t * d.ffn * (2 * kBf16 + kFp8))),
            memory(Family::swiglu, "dense SwiGLU backward", d.t * d.ffn * 5 * kBf16)});
  list.add(kNorms, recomputed(norm("RMSNorm", d.t, d.hidden, 4)));
  list.add(kDenseGateUp, {transpose_weights("transpose dense gate_up weight", 2 * d.ffn * d.hidden),
                          cast("cast dense d(gate_up) to fp8", d.t, 2 * d.ffn), small("transpose scales"),
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
