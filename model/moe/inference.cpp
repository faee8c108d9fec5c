#include "moe/inference.hpp"

#include "base/error.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

std::vector<Operator> attention(const InferenceWork& work, const Block& block) {
  std::vector<Operator> ops = attention_before_core(work, block);
  std::vector<Operator> more = attention_from_core(work, block);
  ops.insert(ops.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return ops;
}

std::vector<Operator> dispatch(const InferenceWork& work) {
  const AllToAllWork transfer = work.all_to_all();
  if (!work.low_latency) return normal_dispatch(transfer);
  return {low_latency_dispatch(transfer, Stage::issue), low_latency_dispatch(transfer, Stage::wire),
          low_latency_dispatch(transfer, Stage::receive)};
}

std::vector<Operator> combine(const InferenceWork& work) {
  const AllToAllWork transfer = work.all_to_all();
  if (!work.low_latency) return normal_combine(transfer);
  return {low_latency_combine(transfer, Stage::issue), low_latency_combine(transfer, Stage::wire),
          low_latency_combine(transfer, Stage::receive)};
}

std::vector<Operator> embedding(const InferenceWork& work) {
  return {in(kEmbedding, elementwise("gather embeddings", work.tokens() * work.model.hidden_size, 2))};
}

// `rows`: tokens whose logits are wanted.
std::vector<Operator> lm_head(const InferenceWork& work, double rows) {
  const double vocabulary = work.model.vocab_size;
  return {in(kNorms, norm("RMSNorm and residual add", rows, work.model.hidden_size, 3)),
          in(kHead, linear_gemm(Precision::bf16, "LM head", rows, vocabulary, work.model.hidden_size)),
          in(kSampling, memory(Family::streaming, "softmax and sample", rows * vocabulary * (kBf16 + kFp32)))};
}

// Token embedding and last hidden state, each normed, concatenated and projected (arXiv 2412.19437, section 2.2).
std::vector<Operator> mtp_input(const InferenceWork& work) {
  const double hidden = work.model.hidden_size;
  const double rows = work.tokens();
  return {in(kEmbedding, elementwise("gather embeddings", rows * hidden, 2)),
          in(kMtpProjection, norm("RMSNorm embedding", rows, hidden, 2)),
          in(kMtpProjection, norm("RMSNorm hidden state", rows, hidden, 2)),
          in(kMtpProjection, linear_gemm(Precision::bf16, "MTP projection", rows, hidden, 2 * hidden))};
}

}  // namespace

AllToAllWork InferenceWork::all_to_all() const {
  return {static_cast<double>(model.hidden_size),
          static_cast<double>(model.num_experts_per_tok),
          tokens(),
          experts(),
          ep,
          gpus_per_node,
          spread,
          dispatch};
}

std::vector<Operator> inference_phase(const std::string& phase, const InferenceWork& work, const Block& block) {
  if (phase == "attn-0") return attention_before_core(work, block);
  if (phase == "attn-1") return attention_from_core(work, block);
  if (phase == "attn") return attention(work, block);
  if (phase == "shared") return shared_experts(work);
  if (phase == "mlp") return block.kind == BlockKind::dense_layer ? dense_ffn(work) : routed_experts(work);
  if (phase == "dispatch") return dispatch(work);
  if (phase == "combine") return combine(work);
  if (phase == "embedding") return embedding(work);
  // those verified in decode, the last of each prompt in prefill
  if (phase == "lm_head") return lm_head(work, work.decode ? work.tokens() : work.requests);
  if (phase == "draft_head") return lm_head(work, work.requests);
  if (phase == "mtp") return mtp_input(work);
  throw SpecError(unknown_name("phase", phase, inference_phases(work.model, work.decode)));
}

std::vector<std::string> inference_phases(const Architecture& model, bool decode) {
  std::vector<std::string> phases = {"attn"};
  if (decode) phases = {"attn-0", "attn-1"};
  phases.emplace_back("dispatch");
  if (model.n_shared_experts > 0) phases.emplace_back("shared");
  phases.emplace_back("mlp");
  phases.emplace_back("combine");
  return phases;
}

const std::vector<PhaseDependency>& inference_dependencies() {
  static const std::vector<PhaseDependency> kDependencies = {
      {"attn-0", "attn-1"},      {"attn-1", "dispatch"},     {"attn", "dispatch"},     {"dispatch", "mlp"},
      {"mlp", "combine"},        {"attn-1", "shared"},       {"attn", "shared"},       {"combine", "attn-0", true},
      {"combine", "attn", true}, {"shared", "attn-0", true}, {"shared", "attn", true},
  };
  return kDependencies;
}

}  // namespace moeline
