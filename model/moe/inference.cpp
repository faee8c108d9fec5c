#include "moe/inference.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "moe/dispatcher.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/tensor_parallel.hpp"

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
  if (const TransferKernels kernels = dispatcher_of(work.mode).dispatch) return kernels(work.all_to_all());
  if (work.mode == CommMode::all_gather) return {in(kDispatchTransfer, gather_for_experts(work))};
  return {};
}

std::vector<Operator> results_back(const InferenceWork& work) {
  if (const TransferKernels kernels = dispatcher_of(work.mode).combine) return kernels(work.all_to_all());
  if (work.mode == CommMode::all_gather) return {in(kCombineTransfer, scatter_from_experts(work))};
  if (work.mode == CommMode::all_reduce) return {in(kCombineTransfer, all_reduce_tokens(work))};
  return {};
}

// Results of routed experts of a smaller hidden size: before ranks add up theirs, or behind what brings them back.
void project_from_latent(const InferenceWork& work, std::vector<Operator>& ops) {
  const Architecture& m = work.model;
  if (m.moe_latent_size == 0) return;
  const double rows = work.own_tokens();
  if (m.latent_norm) ops.push_back(in(kLatentUp, norm("RMSNorm of latents", rows, m.moe_latent_size, 2)));
  ops.push_back(in(kLatentUp, linear_gemm(Precision::bf16, "latent up", rows, m.hidden_size, m.moe_latent_size)));
}

void norm_output(const InferenceWork& work, double rows, std::vector<Operator>& ops) {
  if (!work.model.output_norms) return;
  ops.push_back(in(kNorms, norm("RMSNorm of the FFN's output", rows, work.model.hidden_size, 2)));
}

std::vector<Operator> combine(const InferenceWork& work) {
  std::vector<Operator> ops = results_back(work);
  if (sends_tokens(work.mode)) project_from_latent(work, ops);
  norm_output(work, work.own_tokens(), ops);
  if (work.scatters_tokens()) ops.push_back(in(kCombineTransfer, gather_tokens(work)));
  return ops;
}

std::vector<Operator> mlp(const InferenceWork& work, const Block& block) {
  const bool dense = block.kind == BlockKind::dense_layer;
  std::vector<Operator> ops = dense ? dense_ffn(work, block) : routed_experts(work, block);
  if (!dense && !sends_tokens(work.mode)) project_from_latent(work, ops);
  if (dense || !brings_results(work.mode)) norm_output(work, work.tokens(), ops);
  return ops;
}

Operator gather_embeddings(const InferenceWork& work) {
  return in(kEmbedding, as_small(SmallKernel::embedding_rows,
                                 elementwise("gather embeddings", work.tokens() * work.model.hidden_size, 2)));
}

std::vector<Operator> embedding(const InferenceWork& work) {
  std::vector<Operator> ops = {gather_embeddings(work)};
  if (work.tp > 1) ops.push_back(in(kEmbedding, all_reduce_tokens(work)));
  return ops;
}

// The next token of each row: by one kernel, or from logits that another one has turned to FP32.
std::vector<Operator> choose_tokens(const InferenceWork& work, double logits) {
  if (!work.kernels.casts_logits) {
    return {in(kSampling, memory(Family::streaming, "softmax and sample", logits * (kBf16 + kFp32)))};
  }
  Operator cast = memory(Family::streaming, "logits to FP32", logits * (kBf16 + kFp32));
  Operator choice = memory(Family::streaming, "choose tokens", logits * kFp32);
  return {in(kSampling, as_small(SmallKernel::logits_cast, std::move(cast))),
          in(kSampling, as_small(SmallKernel::token_choice, std::move(choice)))};
}

// `wanted`: tokens whose logits are. A captured graph ends with the logits of all its rows, and what samples comes
// behind it.
std::vector<Operator> lm_head(const InferenceWork& work, double wanted, double padding) {
  const double rows = wanted + padding;
  const double vocabulary = work.model.vocab_size;
  const double part = std::ceil(vocabulary / work.tp);
  std::vector<Operator> ops = {in(kNorms, norm("RMSNorm and residual add", rows, work.model.hidden_size, 3)),
                               in(kHead, linear_gemm(Precision::bf16, "LM head", rows, part, work.model.hidden_size))};
  if (work.tp > 1) ops.push_back(in(kHeadGather, gather_logits(work, rows)));
  for (Operator& op : choose_tokens(work, wanted * vocabulary)) ops.push_back(std::move(op));
  return ops;
}

// Token embedding and last hidden state, each normed, concatenated and projected (arXiv 2412.19437, section 2.2).
std::vector<Operator> mtp_input(const InferenceWork& work) {
  const double hidden = work.model.hidden_size;
  const double rows = work.tokens();
  std::vector<Operator> ops = {
      gather_embeddings(work), in(kMtpProjection, norm("RMSNorm embedding", rows, hidden, 2)),
      in(kMtpProjection, norm("RMSNorm hidden state", rows, hidden, 2)),
      in(kMtpProjection, linear_gemm(Precision::bf16, "MTP projection", rows, hidden, 2 * hidden))};
  // No sum over ranks comes before its layer, which expects to be normed where the others are.
  if (comes_normed(work)) ops.push_back(in(kNorms, norm("RMSNorm and residual add", rows, hidden, 4)));
  return ops;
}

}  // namespace

AllToAllWork InferenceWork::all_to_all() const {
  return {.hidden = static_cast<double>(model.expert_hidden_size()),
          .top_k = top_k(),
          .tokens = sent_tokens(),
          .experts = experts(),
          .ep = ep,
          .gpus_per_node = gpus_per_node,
          .spread = spread,
          .dispatch = dispatch,
          .rows = load.valid,
          .elastic = elastic};
}

InferenceWork InferenceWork::of_requests() const {
  InferenceWork real = *this;
  real.padding = 0;
  if (routes_padding) real.load = scaled(load, real.tokens() / tokens(), local_experts());
  return real;
}

InferenceWork of_experts(InferenceWork work, const Piece& piece) {
  const int local = static_cast<int>(work.local_experts());
  work.load = load_of_experts(work.load, local, piece);
  work.experts_cut = piece;
  return work;
}

namespace {

std::vector<Operator> kernels_of(const std::string& phase, const InferenceWork& work, const Block& block) {
  if (phase == "attn-0") return attention_before_core(work, block);
  if (phase == "attn-1") return attention_from_core(work, block);
  if (phase == "attn") return attention(work, block);
  if (phase == "shared") return shared_experts(work, block);
  if (phase == "mlp") return mlp(work, block);
  if (phase == "dispatch") return dispatch(work);
  if (phase == "combine") return combine(work);
  if (phase == "embedding") return embedding(work);
  if (phase == "lm_head") return lm_head(work, work.logit_rows(), work.padded_rows());
  if (phase == "draft_head") return lm_head(work, work.decode.requests + work.prefill.requests, work.padding);
  if (phase == "mtp") return mtp_input(work);
  if (phase == "stage_input") return {in(kSendActivations, gather_stage_input(work))};
  throw SpecError(unknown_name("phase", phase, inference_phases(work.model, !work.prefill.any(), work.mode)));
}

// What a kernel multiplies beyond what the requests alone would need. Kernels without FLOPs may be others: a message
// of more rows goes by another library.
void tell_padding(const std::vector<Operator>& of_requests, std::vector<Operator>& ops) {
  auto real = of_requests.begin();
  for (Operator& op : ops) {
    if (op.flops == 0) continue;
    real = std::find_if(real, of_requests.end(), [&](const Operator& each) { return each.name == op.name; });
    if (real == of_requests.end()) return;
    op.graph_flops = op.flops - real->flops;
    op.padding_flops = real->padding_flops + op.graph_flops;
    ++real;
  }
}

}  // namespace

std::vector<Operator> inference_phase(const std::string& phase, const InferenceWork& work, const Block& block) {
  std::vector<Operator> ops = kernels_of(phase, work, block);
  if (work.padded_rows() > 0) tell_padding(kernels_of(phase, work.of_requests(), block), ops);
  return ops;
}

std::vector<std::string> inference_phases(const Architecture& model, bool decode, CommMode mode) {
  std::vector<std::string> phases = {"attn"};
  if (decode) phases = {"attn-0", "attn-1"};
  const bool experts = model.n_routed_experts > 0;
  if (experts && sends_tokens(mode)) phases.emplace_back("dispatch");
  if (model.n_shared_experts > 0) phases.emplace_back("shared");
  phases.emplace_back("mlp");
  if (experts && brings_results(mode)) phases.emplace_back("combine");
  return phases;
}

const std::vector<PhaseDependency>& inference_dependencies(CommMode mode) {
  static const std::vector<PhaseDependency> kSent = {
      {"attn-0", "attn-1"},      {"attn-1", "dispatch"},     {"attn", "dispatch"},     {"dispatch", "mlp"},
      {"mlp", "combine"},        {"attn-1", "shared"},       {"attn", "shared"},       {"combine", "attn-0", true},
      {"combine", "attn", true}, {"shared", "attn-0", true}, {"shared", "attn", true},
  };
  // Shared and routed experts are summed before the ranks' partial sums are.
  static const std::vector<PhaseDependency> kSummed = {
      {"attn-0", "attn-1"},  {"attn-1", "mlp"},           {"attn", "mlp"},
      {"attn-1", "shared"},  {"attn", "shared"},          {"mlp", "combine"},
      {"shared", "combine"}, {"combine", "attn-0", true}, {"combine", "attn", true},
  };
  static const std::vector<PhaseDependency> kAlone = {
      {"attn-0", "attn-1"},  {"attn-1", "mlp"},          {"attn", "mlp"},
      {"attn-1", "shared"},  {"attn", "shared"},         {"mlp", "attn-0", true},
      {"mlp", "attn", true}, {"shared", "attn-0", true}, {"shared", "attn", true},
  };
  if (!brings_results(mode)) return kAlone;
  return mode == CommMode::all_reduce ? kSummed : kSent;
}

}  // namespace moeline
