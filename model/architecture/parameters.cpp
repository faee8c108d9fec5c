#include "architecture/parameters.hpp"

#include <algorithm>

#include "architecture/blocks.hpp"
#include "architecture/matrices.hpp"

namespace moeline {
namespace {

constexpr double kBf16Bytes = 2;

// Mean over the positions i = 1 ... S of min(i, window).
double keys_in_window(double seq_len, int window) {
  if (window == 0 || window >= seq_len) return (seq_len + 1) / 2;
  return window - window * (window - 1.0) / (2 * seq_len);
}

double causal_keys(const LayerAttention& attention, double seq_len) {
  if (attention.chunk == 0 || attention.chunk >= seq_len) return keys_in_window(seq_len, attention.window);
  return (attention.chunk + 1) / 2.0;
}

double all_keys(const LayerAttention& attention, double seq_len) {
  const int most = attention.window > 0 ? attention.window : attention.chunk;
  return most == 0 ? seq_len : std::min<double>(seq_len, most);
}

using KeysOf = double (*)(const LayerAttention&, double);

bool is_delta(AttentionKind kind) { return kind == AttentionKind::delta_net || kind == AttentionKind::kda; }

double state_flops(const LayerAttention& attention) {
  const double corrected = is_delta(attention.kind) ? 3 : 2;
  return 2 * corrected * attention.heads * attention.qk_dim * attention.v_dim;
}

// `mean_keys`: that a token sees on average, of the sequence's length.
// The window, and beyond it the compressed tokens, or those of them that an indexer chooses.
double compressed_core_flops(const LayerAttention& attention, double seq_len, KeysOf mean_keys) {
  const KeySelection& selection = attention.selection;
  double keys = mean_keys({.window = attention.window}, seq_len);
  double scores = 0;
  if (attention.compress_ratio > 0) {
    const double compressed = mean_keys({}, seq_len) / attention.compress_ratio;
    scores = 2 * compressed * selection.heads * selection.dim;
    keys += selection.heads > 0 ? std::min(compressed, 1.0 * selection.top_k) : compressed;
  }
  return scores + 2 * keys * attention.heads * (attention.qk_dim + attention.v_dim);
}

double core_flops(const LayerAttention& attention, double seq_len, KeysOf mean_keys) {
  if (has_state(attention.kind)) return state_flops(attention);
  if (attention.kind == AttentionKind::compressed) return compressed_core_flops(attention, seq_len, mean_keys);
  const KeySelection& selection = attention.selection;
  double keys = mean_keys(attention, seq_len);
  double scores = 0;
  if (selection.heads > 0) {
    scores = selection.own ? 2 * keys * selection.heads * selection.dim : 0;
    keys = std::min(keys, mean_keys({.window = selection.top_k * selection.block}, seq_len));
  }
  return scores + 2 * keys * attention.heads * (attention.qk_dim + attention.v_dim);
}

double core_flops(const Architecture& model, double seq_len, KeysOf mean_keys) {
  double flops = 0;
  for (const Layer& layer : model.layers) flops += core_flops(layer.attention, seq_len, mean_keys);
  return flops;
}

double train_flops(const Architecture& model, double seq_len, KeysOf mean_keys) {
  double forward = core_flops(model, seq_len, mean_keys);
  for (const Module& module : modules(model)) forward += module.forward_flops();
  return 3 * forward;
}

double bytes_of_state(const LayerAttention& attention) {
  if (!has_state(attention.kind)) return 0;
  const double values = 1.0 * attention.heads * attention.v_dim;
  const double columns = 2.0 * attention.kv_heads * attention.qk_dim + values;
  return values * attention.qk_dim * attention.state_bytes + columns * std::max(0, attention.conv - 1) * kBf16Bytes;
}

// A window of latents, and beyond it compressed ones and keys of their indexer; what is not compressed yet, in FP32
// with its weights. Latents are 448 numbers in `cache` and 64 rotary ones in BF16, with 8 bytes of scales in FP8 (584
// bytes, as SGLang and vLLM keep them).
double compressed_kv_bytes(const LayerAttention& attention, double tokens, Precision cache) {
  constexpr double kRotary = 64, kScales = 8, kIndexScale = 4, kState = 2 * 4;
  const bool narrow = cache != Precision::bf16;
  const double latent =
      (attention.qk_dim - kRotary) * number_bytes(cache) + kRotary * kBf16Bytes + (narrow ? kScales : 0);
  const double ratio = attention.compress_ratio;
  double bytes = std::min<double>(tokens, attention.window) * latent;
  if (ratio == 0) return bytes;
  const KeySelection& selection = attention.selection;
  const double index = selection.heads > 0 ? selection.dim : 0;
  const double overlap = overlap_of(attention);
  bytes += tokens / ratio * (latent + (index > 0 ? index + kIndexScale : 0));
  return bytes + ratio * overlap * overlap * (attention.qk_dim + index) * kState;
}

// Of which queries choose some: in FP8 four scales beside the latent, and rotary numbers in BF16, 656 bytes of
// DeepSeek-V3.2 (FlashMLA's sparse kernels).
double chosen_latent_bytes(const Architecture& model, Precision cache) {
  constexpr double kNumbersOfScale = 128, kScale = 4;
  const double latent = model.kv_lora_rank, rotary = model.qk_rope_head_dim;
  if (cache == Precision::bf16) return (latent + rotary) * kBf16Bytes;
  return latent * number_bytes(cache) + latent / kNumbersOfScale * kScale + rotary * kBf16Bytes;
}

bool is_table(const Module& module) { return module.name == "embedding" || module.name == "LM head"; }

}  // namespace

double Module::bytes() const {
  double per_weight = stored.empty() ? bytes_per_weight(type) : 0;
  for (const StoredWeights& part : stored) per_weight += part.share * part.bytes;
  return matrices * per_weight + vectors * kBf16Bytes;
}

std::vector<Module> modules(const Architecture& model) { return modules_of(model, blocks_of(model, 0)); }

std::vector<Module> mtp_modules(const Architecture& model) {
  std::vector<Block> blocks;
  for (int i = 0; i < model.num_nextn_predict_layers; ++i) {
    const int layer = model.num_hidden_layers + i;
    blocks.insert(blocks.end(), static_cast<std::size_t>(model.layers_per_draft), layer_of(model, layer));
    blocks.insert(blocks.end(), {{BlockKind::head, layer}, {BlockKind::mtp, layer}});
  }
  std::vector<Module> list = modules_of(model, blocks, true);
  std::erase_if(list, is_table);
  return list;
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

double kv_bytes(const Architecture& model, const LayerAttention& attention, double tokens, Precision cache) {
  if (attention.kind == AttentionKind::none) return 0;
  if (has_state(attention.kind)) return bytes_of_state(attention);
  if (attention.kind == AttentionKind::compressed) return compressed_kv_bytes(attention, tokens, cache);
  const double numbers = attention.kind == AttentionKind::mla
                             ? model.kv_lora_rank + model.qk_rope_head_dim
                             : 1.0 * attention.kv_heads * (attention.qk_dim + attention.v_dim);
  const KeySelection& selection = attention.selection;
  // MiniMax-M3 keeps the keys of its indexer in BF16, DeepSeek in FP8 with a scale.
  constexpr double kScale = 4;
  const double key = attention.kind == AttentionKind::gqa ? selection.dim * kBf16Bytes : selection.dim + kScale;
  const double index = selection.heads > 0 && selection.own ? key : 0;
  const bool chosen = attention.kind == AttentionKind::mla && selection.heads > 0;
  const double bytes = chosen ? chosen_latent_bytes(model, cache) : numbers * number_bytes(cache);
  return all_keys(attention, tokens) * (bytes + index);
}

double kv_bytes(const Architecture& model, double tokens, Precision cache) {
  double sum = 0;
  for (const Layer& layer : model.layers) sum += kv_bytes(model, layer.attention, tokens, cache);
  return sum;
}

double kv_bytes_per_token(const Architecture& model) {
  double sum = 0;
  for (const Layer& layer : model.layers) {
    const LayerAttention& attention = layer.attention;
    constexpr double kMany = 1 << 20;  // longer than any window
    const bool grows = attention.chunk == 0 && !has_state(attention.kind);
    if (grows) sum += kv_bytes(model, attention, kMany + 1) - kv_bytes(model, attention, kMany);
  }
  return sum;
}

double state_bytes(const Architecture& model) {
  double sum = 0;
  for (const Layer& layer : model.layers) sum += bytes_of_state(layer.attention);
  return sum;
}

double attention_core_flops(const LayerAttention& attention, double seq_len) {
  return core_flops(attention, seq_len, causal_keys);
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
