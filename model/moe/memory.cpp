#include "moe/memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "architecture/blocks.hpp"
#include "architecture/matrices.hpp"
#include "moe/attention_kinds.hpp"
#include "moe/kernels.hpp"
#include "moe/tensor_parallel.hpp"
#include "routing/routing.hpp"

namespace moeline {
namespace {

using kernels::kBf16;

double local_experts(const Architecture& model, const GpuWork& d) {
  return std::ceil((model.n_routed_experts + d.redundant_experts) / static_cast<double>(d.ep));
}

// Of a module's matrices, that a rank has; routed experts by the number of them that it has.
double expert_share(const Architecture& model, const GpuWork& d) {
  const double width = columns_of_rank(model.moe_intermediate_size, d.moe_tp, model.expert_weights);
  return d.expert_padding.padded_width(width) / model.moe_intermediate_size *
         d.expert_padding.padded_hidden(model.expert_hidden_size()) / model.expert_hidden_size();
}

double own_share(const Module& module, const Architecture& model, const GpuWork& d) {
  if (module.name == kRoutedExperts) return expert_share(model, d);
  if (module.name == kSharedExperts && d.mode != CommMode::all_reduce) return 1;
  return tensor_parallel_share(module, model, d.tp);
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

std::vector<Block> held_blocks(const Architecture& model, const GpuWork& d) {
  return d.stage.empty() ? blocks_of(model, 0) : d.stage;
}

// Layers whose keys and values, or states, the GPU keeps.
std::vector<LayerAttention> kept_layers(const Architecture& model, const GpuWork& d) {
  std::vector<LayerAttention> layers;
  for (const Block& block : held_blocks(model, d)) {
    if (is_layer(block.kind)) layers.push_back(attention_of_rank(block.content.attention, d.tp));
  }
  for (int i = 0; d.mtp && i < model.num_nextn_predict_layers * model.layers_per_draft; ++i) {
    layers.push_back(attention_of_rank(model.mtp_layer.attention, d.tp));
  }
  return layers;
}

// GPUs that each have a part of a prompt's keys.
int parts_of_keys(const GpuWork& d) { return d.gathers_keys ? 1 : d.cp; }

double bytes_of_layers(const Architecture& model, const std::vector<LayerAttention>& layers, double tokens) {
  double sum = 0;
  for (const LayerAttention& layer : layers) sum += kv_bytes(model, layer, tokens, model.kv_cache);
  return sum;
}

std::vector<LayerAttention> with_states(std::vector<LayerAttention> layers) {
  std::erase_if(layers, [](const LayerAttention& layer) { return !has_state(layer.kind); });
  return layers;
}

double kv_cache_bytes(const Architecture& model, const GpuWork& d, const std::vector<LayerAttention>& layers) {
  const auto bytes_of = [&](const Sequences& s) { return s.requests * bytes_of_layers(model, layers, s.kv_len); };
  return d.caches * (bytes_of(d.decode) + bytes_of(d.prefill) / parts_of_keys(d));
}

// Numbers per token: q, k, v and output of the core; in MLA's decode q and output in the latent space.
double decode_numbers(const Architecture& model, const LayerAttention& a) {
  if (a.kind == AttentionKind::mla) return a.heads * (2.0 * model.kv_lora_rank + model.qk_rope_head_dim);
  return 1.0 * (a.heads + a.kv_heads) * (a.qk_dim + a.v_dim);
}

// Of whom the core attends to chosen keys alone, which it reads as they are in the cache.
bool reads_latents(const LayerAttention& a, const Sequences& prompts) {
  return a.kind == AttentionKind::mla && chooses(a, prompts);
}

double prefill_numbers(const Architecture& model, const LayerAttention& a, const GpuWork& d) {
  if (reads_latents(a, d.prefill)) return d.prefill.tokens() * decode_numbers(model, a);
  const double each = a.qk_dim + a.v_dim;
  const double blocks = d.gathers_keys ? d.cp : std::min(2, d.cp);  // of keys: the next one is on its way
  const bool expands = a.kind == AttentionKind::mla;                // those that are cached, too
  const double seen = std::max(d.prefill.kv_len, d.prefill.query_len * d.cp);
  const double keys = expands ? d.prefill.requests * seen / d.cp : d.prefill.tokens();
  return d.prefill.tokens() * a.heads * each + blocks * keys * (expands ? a.heads : a.kv_heads) * each;
}

// Scores of an indexer, in FP32, of each new token and each key of its prompt; stacks that cut them have fewer at once.
double score_bytes(const LayerAttention& a, const GpuWork& d) {
  if (!a.selection.own || !reads_latents(a, d.prefill)) return 0;
  return d.prefill.tokens() * d.prefill.kv_len * 4;
}

// Of the layer that has most.
double attention_bytes(const Architecture& model, const GpuWork& d) {
  double most = 0;
  for (const LayerAttention& a : kept_layers(model, d)) {
    const double numbers = d.decode.tokens() * decode_numbers(model, a) + prefill_numbers(model, a, d);
    most = std::max(most, numbers * kBf16 + score_bytes(a, d));
  }
  return most / d.micro_batches;
}

// Gate and up projections' output, and the activation's.
double ffn_bytes(const Architecture& a, const GpuWork& d, double rows, double width) {
  return rows * width * ((a.gated_ffn ? 2 : 1) * kBf16 + activation_bytes(d.dispatch));
}

// Of an attention group's tokens, those that a rank of it sends to experts.
double own_tokens(const GpuWork& d, double tokens) { return sends_tokens(d.mode) ? tokens / d.tp : tokens; }

// Of the experts' group.
double all_tokens(const GpuWork& d, double tokens) { return tokens * std::max(1, d.ep * d.moe_tp / d.tp); }

// Rows of a layer's experts, and the tokens that came for them where these are kept beside them.
struct ArrivedRows {
  double rows = 0, tokens = 0;
};

// DeepEP's second version without counts on the host has room for whatever could come.
ArrivedRows most_rows(const Architecture& a, const GpuWork& d, double own) {
  const double local = local_experts(a, d), padding = local * (kRowPadding - 1);
  const double all = own * d.ep;
  if (d.elastic.layout == RowLayout::expanded) return {all * std::min<double>(a.num_experts_per_tok, local) + padding};
  return {own * a.num_experts_per_tok * d.busiest_rank + padding, all};
}

ArrivedRows arrived_rows(const Architecture& a, const GpuWork& d, double tokens) {
  const Dispatcher& by = dispatcher_of(d.mode);
  const double local = local_experts(a, d), own = own_tokens(d, tokens);
  if (by.arrival == Arrival::slabs) return {local * d.ep * own};
  if (by.arrival == Arrival::rows && !d.elastic.cpu_sync) return most_rows(a, d, own);
  const double rows = all_tokens(d, tokens) / d.ep * a.num_experts_per_tok * d.busiest_rank + local * (kRowPadding - 1);
  if (d.mode == CommMode::all_gather) return {rows, all_tokens(d, tokens)};
  const bool sorted = by.arrival == Arrival::rows && d.elastic.layout == RowLayout::expanded;
  return {rows, by.sends_tokens && !sorted ? own * std::min(a.num_experts_per_tok, d.ep) : 0};
}

double experts_bytes(const Architecture& a, const GpuWork& d, double tokens) {
  const double width =
      d.expert_padding.padded_width(columns_of_rank(a.moe_intermediate_size, d.moe_tp, a.expert_weights));
  const double in = a.expert_hidden_size() * activation_bytes(d.dispatch);
  const double out = a.expert_hidden_size() * kBf16;
  const double gate_up = (a.gated_ffn ? 2 : 1) * width * kBf16;
  const double activated = width * activation_bytes(d.dispatch);
  const double own = own_tokens(d, tokens);
  const auto [rows, received] = arrived_rows(a, d, tokens);
  const double widest = std::max({received * in + rows * in, rows * (in + gate_up), rows * (gate_up + activated),
                                  rows * (activated + out), rows * out + own * out});
  const double shared = d.mode == CommMode::all_reduce ? 1.0 / d.tp : 1.0;
  return widest + ffn_bytes(a, d, own, shared * a.shared_width());
}

double mlp_bytes(const Architecture& a, const GpuWork& d, double tokens) {
  const double dense =
      a.moe_layers() < a.num_hidden_layers ? ffn_bytes(a, d, tokens, 1.0 * a.intermediate_size / d.tp) : 0;
  return a.n_routed_experts > 0 ? std::max(dense, experts_bytes(a, d, tokens)) : dense;
}

double activation_bytes(const Architecture& a, const GpuWork& d) {
  const double tokens = d.tokens() / d.micro_batches;
  const double attention = attention_bytes(a, d);
  const double mlp = mlp_bytes(a, d, tokens);
  const int pairs = d.micro_batches / 2;
  const double layer = pairs * (attention + mlp) + d.micro_batches % 2 * std::max(attention, mlp);
  const double logits = holds(d, BlockKind::head) ? d.logit_rows() * a.vocab_size * (kBf16 + 4) : 0;
  return d.tokens() * (1 + a.hc_mult) * a.hidden_size * kBf16 + std::max(layer, logits);
}

double communication_bytes(const Architecture& a, const GpuWork& d) {
  const BufferBytes buffers = dispatcher_of(d.mode).buffers;
  if (buffers == nullptr || d.ep == 1 || a.n_routed_experts == 0) return 0;
  return buffers({.hidden = 1.0 * a.expert_hidden_size(),
                  .tokens = std::ceil(own_tokens(d, d.tokens() / d.micro_batches)),
                  .top_k = a.num_experts_per_tok,
                  .local_experts = local_experts(a, d),
                  .ep = d.ep,
                  .gpus_per_node = d.gpus_per_node,
                  .sms = d.comm_sms,
                  .dispatch = d.dispatch,
                  .topology = d.elastic.topology});
}

}  // namespace

double tensor_parallel_share(const Module& module, const Architecture& model, int tp) {
  if (module.attention.kind != AttentionKind::none) {
    const LayerAttention own = attention_of_rank(module.attention, tp);
    return parameters_of(attention_matrices(model, own)) / parameters_of(attention_matrices(model, module.attention));
  }
  const bool split = module.name.starts_with(kDenseFfn) || module.name == kSharedExperts ||
                     module.name == "embedding" || module.name == "LM head";
  return split ? 1.0 / tp : 1.0;
}

Memory memory_per_gpu(const Architecture& model, const GpuWork& work) {
  Memory memory;
  memory.weights = weight_bytes(model, work, modules_of(model, held_blocks(model, work)));
  if (work.mtp) memory.draft_model = weight_bytes(model, work, mtp_modules(model));
  memory.weights += memory.draft_model;
  const std::vector<LayerAttention> layers = kept_layers(model, work);
  memory.kv_cache = kv_cache_bytes(model, work, layers);
  memory.states = kv_cache_bytes(model, work, with_states(layers));
  memory.activations = activation_bytes(model, work);
  memory.communication = communication_bytes(model, work);
  return memory;
}

CachedLayers cached_layers(const Architecture& model, const GpuWork& work) {
  return {kept_layers(model, work), work.prefill.any() ? parts_of_keys(work) : 1};
}

double cache_of_request(const Architecture& model, const CachedLayers& cached, double tokens) {
  return bytes_of_layers(model, cached.layers, tokens) / cached.parts;
}

double routed_expert_bytes(const Architecture& model, int moe_tp) {
  double sum = 0;
  for (const Module& module : modules_of(model, blocks_of(model, 0))) {
    if (module.name == kRoutedExperts) sum += module.bytes() * module.count / model.n_routed_experts / moe_tp;
  }
  return sum / model.moe_layers();
}

}  // namespace moeline
