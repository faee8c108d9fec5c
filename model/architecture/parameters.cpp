#include "architecture/parameters.hpp"

#include <algorithm>

#include "architecture/matrices.hpp"

namespace moeline {
namespace {

constexpr double kBf16Bytes = 2;

double sum_of(const std::vector<Matrix>& matrices) {
  double sum = 0;
  for (const Matrix& matrix : matrices) sum += matrix.parameters;
  return sum;
}

// Norms of latents or of queries and keys, and the biases of the projections that lead to them.
double vectors_before_attention(const Architecture& a) {
  if (a.is_mla()) {
    const double latents = a.q_lora_rank + a.kv_lora_rank;
    return latents + (a.attention_bias ? latents + a.qk_rope_head_dim : 0);
  }
  const double query = 1.0 * a.num_attention_heads * a.head_dim;
  const double key = 1.0 * a.num_key_value_heads * a.head_dim;
  const double norms = a.qk_norm == QkNorm::none ? 0 : a.qk_norm == QkNorm::per_head ? 2.0 * a.head_dim : query + key;
  return norms + (a.attention_bias ? query + 2 * key : 0);
}

Module attention(const Architecture& a) {
  Module m{kAttention, static_cast<double>(a.num_hidden_layers), sum_of(attention_matrices(a))};
  m.vectors = vectors_before_attention(a);
  if (a.output_bias) m.vectors += a.hidden_size;
  if (a.attention_sinks) m.vectors += a.num_attention_heads;
  m.type = a.weights;
  return m;
}

// Gate, up and down projection.
Module feed_forward(const char* name, const Architecture& a, double count, const std::vector<Matrix>& matrices) {
  Module m{name, count, sum_of(matrices)};
  m.type = a.weights;
  return m;
}

Module routed_experts(const Architecture& a) {
  const double experts = a.n_routed_experts;
  Module m = feed_forward(kRoutedExperts, a, a.moe_layers() * experts, expert_matrices(a));
  if (a.expert_bias) m.vectors = 2.0 * a.moe_intermediate_size + a.hidden_size;
  m.active = a.num_experts_per_tok / experts;
  m.type = a.expert_weights;
  return m;
}

// The norm after the last layer counts with the layers'.
std::vector<Module> layers(const Architecture& a) {
  const double hidden = a.hidden_size;
  const double moe = a.moe_layers();
  std::vector<Module> list = {attention(a), {"norms", 2.0 * a.num_hidden_layers + 1, 0, hidden}};
  const auto add = [&](const Module& module) {
    if (module.count > 0) list.push_back(module);
  };
  add(feed_forward(kDenseFfn, a, a.num_hidden_layers - moe, dense_matrices(a)));
  if (moe == 0) return list;
  list.push_back({"router", moe, hidden * a.n_routed_experts, a.router_bias ? 1.0 * a.n_routed_experts : 0});
  list.push_back(routed_experts(a));
  add(feed_forward(kSharedExperts, a, moe * a.n_shared_experts, shared_matrices(a)));
  return list;
}

void add_stored(const Architecture& a, bool mtp, std::vector<Module>& list) {
  for (Module& module : list) {
    for (const StoredWeights& part : a.stored) {
      if (part.module == module.name && part.mtp == mtp) module.stored.push_back(part);
    }
  }
}

double kv_bytes_per_layer(const Architecture& a) {
  const double width = a.is_mla() ? a.kv_lora_rank + a.qk_rope_head_dim : 2.0 * a.num_key_value_heads * a.head_dim;
  return width * kBf16Bytes;
}

// Mean over the positions i = 1 ... S of min(i, window).
double causal_keys(double seq_len, int window) {
  if (window == 0 || window >= seq_len) return (seq_len + 1) / 2;
  return window - window * (window - 1.0) / (2 * seq_len);
}

double all_keys(double seq_len, int window) { return window == 0 ? seq_len : std::min<double>(seq_len, window); }

// `mean_keys`: that a token sees on average, of the sequence's length and a window.
double core_flops(const Architecture& a, double seq_len, double (*mean_keys)(double, int)) {
  const double width = a.is_mla() ? a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim : 2.0 * a.head_dim;
  double keys = 0;
  for (int layer = 0; layer < a.num_hidden_layers; ++layer) keys += mean_keys(seq_len, a.window(layer));
  return 2 * keys * a.num_attention_heads * width;
}

double train_flops(const Architecture& model, double seq_len, double (*mean_keys)(double, int)) {
  double forward = core_flops(model, seq_len, mean_keys);
  for (const Module& module : modules(model)) forward += module.forward_flops();
  return 3 * forward;
}

}  // namespace

double Module::bytes() const {
  double per_weight = stored.empty() ? bytes_per_weight(type) : 0;
  for (const StoredWeights& part : stored) per_weight += part.share * part.bytes;
  return matrices * per_weight + vectors * kBf16Bytes;
}

std::vector<Module> modules(const Architecture& model) {
  const double table = 1.0 * model.vocab_size * model.hidden_size;
  std::vector<Module> list = {{"embedding", 1, table}};
  list.front().active = model.tie_word_embeddings ? 1 : 0;  // tied, it is the LM head as well
  for (const Module& module : layers(model)) list.push_back(module);
  if (!model.tie_word_embeddings) list.push_back({"LM head", 1, table});
  add_stored(model, false, list);
  return list;
}

std::vector<Module> mtp_modules(const Architecture& model) {
  if (model.num_nextn_predict_layers == 0) return {};
  const double hidden = model.hidden_size;
  Architecture one = model;
  one.num_hidden_layers = 1;
  one.first_k_dense_replace = 0;
  std::vector<Module> list = layers(one);
  list.push_back({"MTP projection", 1, 2 * hidden * hidden, 2 * hidden});  // with the norms of its two inputs
  for (Module& module : list) module.count *= model.num_nextn_predict_layers;
  add_stored(model, true, list);
  return list;
}

Precision stored_format(const Architecture& model, const std::string& module) {
  const StoredWeights* most = nullptr;
  for (const StoredWeights& part : model.stored) {
    if (part.module == module && !part.mtp && (most == nullptr || part.share > most->share)) most = &part;
  }
  if (most != nullptr) return most->type;
  return module == kRoutedExperts ? model.expert_weights : model.weights;
}

Precision stored_format(const Architecture& model, const std::string& module, const std::string& matrix) {
  for (const StoredWeights& part : model.stored) {
    const bool has = std::find(part.matrices.begin(), part.matrices.end(), matrix) != part.matrices.end();
    if (part.module == module && !part.mtp && has) return part.type;
  }
  return stored_format(model, module);
}

double parameters(const Architecture& model) {
  double sum = 0;
  for (const Module& module : modules(model)) sum += module.parameters();
  return sum;
}

double active_parameters(const Architecture& model) {
  double sum = 0;
  for (const Module& module : modules(model)) sum += module.active_parameters();
  return sum;
}

double kv_bytes(const Architecture& model, double tokens) {
  double kept = 0;
  for (int layer = 0; layer < model.num_hidden_layers; ++layer) {
    const int window = model.window(layer);
    kept += window > 0 ? std::min<double>(tokens, window) : tokens;
  }
  return kept * kv_bytes_per_layer(model);
}

double kv_bytes_per_token(const Architecture& model) {
  const auto full =
      model.windows.empty() ? model.num_hidden_layers : std::count(model.windows.begin(), model.windows.end(), 0);
  return static_cast<double>(full) * kv_bytes_per_layer(model);
}

double attention_core_flops(const Architecture& model, double seq_len) {
  return core_flops(model, seq_len, causal_keys);
}

double train_flops_per_token(const Architecture& model, double seq_len) {
  return train_flops(model, seq_len, causal_keys);
}

double train_flops_per_token_non_causal(const Architecture& model, double seq_len) {
  return train_flops(model, seq_len, all_keys);
}

}  // namespace moeline
