// What a model has besides its layers, in Megatron: embedding and LM head split over the tensor parallel ranks by the
// vocabulary, cross entropy in BF16, in place, and what an MTP module puts before its layer. All of it in BF16.
#include "moe/megatron.hpp"
#include "moe/megatron_kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline::megatron {
namespace {

using namespace kernels;
using namespace module_names;

struct Ends {
  explicit Ends(const LayerWork& work)
      : t(work.tokens()),
        own(work.own_tokens()),
        hidden(work.model.hidden_size),
        part(1.0 * work.model.vocab_size / work.tp),
        mtp_part(hidden / work.tp) {}
  [[nodiscard]] LinearShape head() const { return {t, part, hidden}; }
  [[nodiscard]] LinearShape projection() const { return {t, mtp_part, 2 * hidden}; }
  double t, own, hidden, part, mtp_part;
};

Operator gather_rows(const Ends& d) { return elementwise("gather embeddings", d.t * d.hidden, 2); }

Operator scatter_gradients(const Ends& d) {
  return memory(Family::streaming, "scatter embedding gradients", d.t * d.hidden * (kBf16 + 2 * kFp32));
}

}  // namespace

std::vector<Operator> embedding_forward(const LayerWork& work) {
  const Ends d(work);
  Kernels list(work, Precision::bf16);
  list.add(kEmbedding, gather_rows(d));
  list.scatter(kEmbedding, d.hidden);
  return list.ops();
}

std::vector<Operator> embedding_weight(const LayerWork& work) {
  const Ends d(work);
  Kernels list(work, Precision::bf16);
  list.gather(kEmbedding, d.hidden);
  list.add(kEmbedding, scatter_gradients(d));
  return list.ops();
}

std::vector<Operator> head_forward(const LayerWork& work) {
  const Ends d(work);
  Kernels list(work, Precision::bf16);
  list.add(kNorms, norm("RMSNorm", d.own, d.hidden, 2));
  list.gather(kHeadGather, d.hidden);
  list.forward(kHead, "LM head", d.head());
  list.add(kLoss, {elementwise("cross entropy: largest logit", d.t * d.part, 1),
                   elementwise("cross entropy", d.t * d.part, 2)});
  return list.ops();
}

std::vector<Operator> head_backward_input(const LayerWork& work) {
  const Ends d(work);
  Kernels list(work, Precision::bf16);
  list.add(kLoss, elementwise("cross entropy backward", d.t * d.part, 2));
  list.gather_beside(kHeadGather, d.hidden);
  list.input_gradient(kHead, "LM head", d.head());
  list.scatter(kHeadGather, d.hidden);
  list.add(kNorms, {norm("RMSNorm backward", d.own, d.hidden, 3), small("accumulate dW of RMSNorm")});
  return list.ops();
}

std::vector<Operator> head_weight(const LayerWork& work) {
  const Ends d(work);
  Kernels list(work, Precision::bf16);
  list.weight_gradient(kHead, "LM head", d.head());
  return list.ops();
}

// Token embedding and hidden state, each normed, concatenated and projected (arXiv 2412.19437, section 2.2).
std::vector<Operator> mtp_forward(const LayerWork& work) {
  const Ends d(work);
  Kernels list(work, Precision::bf16);
  list.add(kEmbedding, gather_rows(d));
  list.scatter(kEmbedding, d.hidden);
  list.add(kMtpProjection,
           {norm("RMSNorm embedding", d.own, d.hidden, 2), norm("RMSNorm hidden state", d.own, d.hidden, 2)});
  list.add(kMtpProjection, elementwise("join both", d.own * 2 * d.hidden, 2));
  list.gather(kMtpProjection, 2 * d.hidden);
  list.forward(kMtpProjection, "MTP projection", d.projection());
  list.scatter(kMtpProjection, d.hidden);
  return list.ops();
}

std::vector<Operator> mtp_backward_input(const LayerWork& work) {
  const Ends d(work);
  Kernels list(work, Precision::bf16);
  list.gather(kMtpProjection, d.hidden);
  list.gather_beside(kMtpProjection, 2 * d.hidden);
  list.input_gradient(kMtpProjection, "MTP projection", d.projection());
  list.scatter(kMtpProjection, 2 * d.hidden);
  list.add(kMtpProjection,
           {norm("RMSNorm embedding backward", d.own, d.hidden, 3),
            norm("RMSNorm hidden state backward", d.own, d.hidden, 3), elementwise("add", d.own * d.hidden, 3)});
  return list.ops();
}

std::vector<Operator> mtp_weight(const LayerWork& work) {
  const Ends d(work);
  Kernels list(work, Precision::bf16);
  list.weight_gradient(kMtpProjection, "MTP projection", d.projection());
  list.gather(kEmbedding, d.hidden);
  list.add(kEmbedding, scatter_gradients(d));
  return list.ops();
}

}  // namespace moeline::megatron
