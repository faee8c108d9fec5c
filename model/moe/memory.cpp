#include "moe/memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "architecture/block_modules.hpp"
#include "architecture/matrices.hpp"
#include "moe/kernels.hpp"
#include "routing/routing.hpp"

namespace moeline {
namespace {

using kernels::kBf16;

double local_experts(const Architecture& model, const GpuWork& d) {
  return std::ceil((model.n_routed_experts + d.redundant_experts) / static_cast<double>(d.ep));
}

// The model with the heads that a rank of an attention group has.
Architecture heads_of_rank(Architecture model, const GpuWork& d) {
  model.num_attention_heads /= d.tp;
  model.num_key_value_heads = std::max(1, model.num_key_value_heads / d.tp);
  return model;
}

double parameters_of(const std::vector<Matrix>& matrices) {
  return std::accumulate(matrices.begin(), matrices.end(), 0.0,
                         [](double sum, const Matrix& matrix) { return sum + matrix.parameters; });
}

// Of a module's matrices, that a rank has; routed experts by the number of them that it has.
double own_share(const Module& module, const Architecture& model, const GpuWork& d) {
  if (module.name == kAttention) {
    return parameters_of(attention_matrices(heads_of_rank(model, d))) / parameters_of(attention_matrices(model));
  }
  if (module.name == kRoutedExperts) return 1.0 / d.moe_tp;
  if (module.name == kSharedExperts) return d.mode == CommMode::all_reduce ? 1.0 / d.tp : 1.0;
  const bool split = module.name == kDenseFfn || module.name == "embedding" || module.name == "LM head";
  return split ? 1.0 / d.tp : 1.0;
}

double weight_bytes(const Architecture& model, const GpuWork& d, const std::vector<Module>& list) {
  double sum = 0;
  for (Module module : list) {
    const bool routed = module.name == kRoutedExperts;
    module.matrices *= own_share(module, model, d);
    sum += module.bytes() * (routed ? module.count / model.n_routed_experts * local_experts(model, d) : module.count);
  }
  return sum;
}

bool holds(const GpuWork& d, BlockKind kind) {
  return d.stage.empty() ||
         std::any_of(d.stage.begin(), d.stage.end(), [&](const Block& block) { return block.kind == kind; });
}

std::vector<Module> held_modules(const Architecture& model, const GpuWork& d) {
  if (d.stage.empty()) return modules(model);
  std::vector<BlockKind> kinds;
  for (const Block& block : d.stage) kinds.push_back(block.kind);
  return modules_of(model, kinds);
}

// With the layers of the stage alone.
Architecture layers_of_stage(Architecture model, const GpuWork& d) {
  if (d.stage.empty()) return model;
  std::vector<int> windows;
  for (const Block& block : d.stage) {
    if (is_layer(block.kind)) windows.push_back(block.attention.window);
  }
  model.num_hidden_layers = static_cast<int>(windows.size());
  if (!model.windows.empty()) model.windows = std::move(windows);
  return model;
}

double kv_cache_bytes(const Architecture& model, const GpuWork& d) {
  Architecture cached = layers_of_stage(heads_of_rank(model, d), d);
  if (d.mtp) {
    cached.num_hidden_layers += model.num_nextn_predict_layers;
    if (!cached.windows.empty()) cached.windows.resize(static_cast<std::size_t>(cached.num_hidden_layers), 0);
  }
  const auto bytes_of = [&](const Sequences& s) { return s.requests * kv_bytes(cached, s.kv_len); };
  const double prompts = bytes_of(d.prefill) / (d.gathers_keys ? 1 : d.cp);
  return d.caches * (bytes_of(d.decode) + prompts) * number_bytes(model.kv_cache) / kBf16;
}

double attention_bytes(const Architecture& model, const GpuWork& d) {
  const Architecture a = heads_of_rank(model, d);
  const double heads = a.num_attention_heads;
  const double rope = a.qk_rope_head_dim;
  const double grouped = 2 * heads * a.head_dim, grouped_keys = 2.0 * a.num_key_value_heads * a.head_dim;
  const double latent = heads * (2.0 * a.kv_lora_rank + rope);
  const double expanded = heads * (a.qk_nope_head_dim + rope + a.v_head_dim);  // of queries and output, or of keys
  const double blocks = d.gathers_keys ? d.cp : std::min(2, d.cp);             // of keys: the next one is on its way
  const double decoded = d.decode.tokens() / d.micro_batches * (a.is_mla() ? latent : grouped + grouped_keys);
  const double prefilled =
      d.prefill.tokens() / d.micro_batches * (a.is_mla() ? (1 + blocks) * expanded : grouped + blocks * grouped_keys);
  return (decoded + prefilled) * kBf16;
}

// Gate and up projections' output, and the activation's.
double gated_bytes(const GpuWork& d, double rows, double width) {
  return rows * width * (2 * kBf16 + activation_bytes(d.dispatch));
}

// Of an attention group's tokens, those that a rank of it sends to experts.
double own_tokens(const GpuWork& d, double tokens) { return sends_tokens(d.mode) ? tokens / d.tp : tokens; }

// Of the experts' group.
double all_tokens(const GpuWork& d, double tokens) { return tokens * std::max(1, d.ep * d.moe_tp / d.tp); }

double experts_bytes(const Architecture& a, const GpuWork& d, double tokens) {
  const double local = local_experts(a, d);
  const double width = 1.0 * a.moe_intermediate_size / d.moe_tp;
  const double in = a.hidden_size * activation_bytes(d.dispatch);
  const double out = a.hidden_size * kBf16;
  const double gate_up = 2 * width * kBf16;
  const double activated = width * activation_bytes(d.dispatch);
  const double own = own_tokens(d, tokens);
  double rows = local * d.ep * own;
  double received = 0;  // beside the rows; the low-latency mode delivers rows
  if (d.mode != CommMode::low_latency) {
    rows = all_tokens(d, tokens) / d.ep * a.num_experts_per_tok * d.busiest_rank + local * (kRowPadding - 1);
    received = d.mode == CommMode::all_gather ? all_tokens(d, tokens) * in
               : sends_tokens(d.mode)         ? own * std::min(a.num_experts_per_tok, d.ep) * in
                                              : 0;
  }
  const double widest = std::max({received + rows * in, rows * (in + gate_up), rows * (gate_up + activated),
                                  rows * (activated + out), rows * out + own * out});
  const double shared = d.mode == CommMode::all_reduce ? 1.0 / d.tp : 1.0;
  return widest + gated_bytes(d, own, shared * a.n_shared_experts * a.moe_intermediate_size);
}

double mlp_bytes(const Architecture& a, const GpuWork& d, double tokens) {
  const double dense =
      a.moe_layers() < a.num_hidden_layers ? gated_bytes(d, tokens, 1.0 * a.intermediate_size / d.tp) : 0;
  return a.n_routed_experts > 0 ? std::max(dense, experts_bytes(a, d, tokens)) : dense;
}

double activation_bytes(const Architecture& a, const GpuWork& d) {
  const double tokens = d.tokens() / d.micro_batches;
  const double attention = attention_bytes(a, d);
  const double mlp = mlp_bytes(a, d, tokens);
  const int pairs = d.micro_batches / 2;
  const double layer = pairs * (attention + mlp) + d.micro_batches % 2 * std::max(attention, mlp);
  const double logits = holds(d, BlockKind::head) ? d.logit_rows() * a.vocab_size * (kBf16 + 4) : 0;
  return d.tokens() * 2 * a.hidden_size * kBf16 + std::max(layer, logits);
}

double low_latency_buffers(const Architecture& a, const GpuWork& d) {
  const double tokens = std::ceil(own_tokens(d, d.tokens() / d.micro_batches));
  const double experts = local_experts(a, d) * d.ep;
  const double bf16 = a.hidden_size * kBf16;
  const double scales = a.hidden_size / 128 * 4;
  const double dispatch = 16 + std::max(bf16, a.hidden_size + scales);
  const double combine = bf16 + scales;
  const double send = tokens * std::max(dispatch, experts * combine);
  const double receive = tokens * experts * std::max(dispatch, combine);
  return 2 * (send + receive + experts * 4);
}

// Tokens in the queues: the larger of dispatch and combine; DeepEP rounds the RDMA ones up to whole chunks.
struct Queues {
  int largest_ep;
  double nvlink, rdma;
};
constexpr std::array<Queues, 6> kQueues = {
    {{8, 256, 0}, {16, 288, 140}, {32, 288, 128}, {64, 288, 140}, {128, 560, 132}, {1 << 30, 720, 132}}};

double communication_bytes(const Architecture& a, const GpuWork& d) {
  if (d.ep == 1 || a.n_routed_experts == 0) return 0;
  if (d.mode == CommMode::low_latency) return low_latency_buffers(a, d);
  if (d.mode == CommMode::normal) return normal_buffer_bytes(a, d.ep, d.comm_sms);
  if (d.mode != CommMode::nvlink) return 0;
  const double slots = d.ep * std::ceil(own_tokens(d, d.tokens() / d.micro_batches));
  return slots * a.hidden_size * (activation_bytes(d.dispatch) + kBf16);
}

}  // namespace

double normal_buffer_bytes(const Architecture& a, int ep, int comm_sms) {
  constexpr double kGpus = 8;        // of a node; DeepEP knows no other
  constexpr double kSourceMeta = 8;  // bytes: rank and ranks of the node that want the token
  constexpr double kMostTopK = 128, kMostScales = 128;
  const double channels = comm_sms / 2;  // NOLINT: whole channels
  const double nodes = std::max(1.0, std::floor(ep / kGpus));
  const double token = a.hidden_size * kBf16 + kSourceMeta + kMostTopK * (8 + 4) + kMostScales * 4;
  const Queues& queues =
      *std::find_if(kQueues.begin(), kQueues.end(), [&](const Queues& each) { return ep <= each.largest_ep; });
  const double nvlink = channels * std::min<double>(ep, kGpus) * (queues.nvlink * token + (2 * nodes + 3) * 4);
  if (ep <= kGpus) return nvlink;
  const double rdma = 2 * channels * nodes * (queues.rdma * (token + 16) + (2 * kGpus + 2) * 4) + (1 << 20);
  return nvlink + rdma;
}

Memory memory_per_gpu(const Architecture& model, const GpuWork& work) {
  Memory memory;
  memory.weights = weight_bytes(model, work, held_modules(model, work));
  if (work.mtp) memory.weights += weight_bytes(model, work, mtp_modules(model));
  memory.kv_cache = kv_cache_bytes(model, work);
  memory.activations = activation_bytes(model, work);
  memory.communication = communication_bytes(model, work);
  return memory;
}

}  // namespace moeline
