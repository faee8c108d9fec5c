#include <fmt/format.h>

#include <algorithm>

#include "architecture/config_keys.hpp"
#include "architecture/read_layers.hpp"

namespace moeline {
namespace {

// Bytes of a number of the state; stacks keep FP32 where a configuration says nothing.
int read_state_bytes(const ModelFields& fields, const char* key) {
  const std::string type = fields.text_or(key, "float32");
  if (type == "float32") return 4;
  if (type == "bfloat16" || type == "float16") return 2;
  refuse(fields, key, "a state of " + type.substr(0, 40));
}

const Layer& last_full(const Architecture& a) {
  const auto full = std::find_if(a.layers.rbegin(), a.layers.rend(),
                                 [](const Layer& layer) { return !has_state(layer.attention.kind); });
  return full == a.layers.rend() ? a.layers.back() : *full;
}

// Every layer but each so manieth has a state, or those that a list says.
std::vector<bool> linear_by_interval(const ModelFields& fields, const Architecture& a) {
  const std::vector<std::string> types =
      word_per_layer(fields, "layer_types", {"full_attention", "linear_attention"}, a);
  const int interval = fields.integer_or("full_attention_interval", 1, kWidest, 1);
  std::vector<bool> linear(a.layers.size());
  for (std::size_t i = 0; i < linear.size(); ++i) {
    const bool by_interval = (i + 1) % static_cast<std::size_t>(interval) != 0;
    linear[i] = types.empty() ? by_interval : types[i] == "linear_attention";
    if (!types.empty() && fields.has("full_attention_interval") && linear[i] != by_interval) {
      throw fields.error("layer_types", "are not what full_attention_interval says");
    }
  }
  return linear;
}

// The blocks of Nemotron's layers: one letter or word for each.
enum class Part { mamba, attention, mlp, moe };

Part part_named(const ModelFields& fields, const char* key, const std::string& word) {
  if (word == "M" || word == "mamba") return Part::mamba;
  if (word == "*" || word == "attention") return Part::attention;
  if (word == "-" || word == "mlp") return Part::mlp;
  if (word == "E" || word == "moe") return Part::moe;
  refuse(fields, key, "layers of " + word.substr(0, 40));
}

std::vector<Part> read_parts(const ModelFields& fields, const char* pattern, const char* list) {
  std::vector<Part> parts;
  if (fields.has(list)) {
    for (const std::string& word : fields.texts_or_none(list)) parts.push_back(part_named(fields, list, word));
  } else {
    for (const char letter : fields.text_or(pattern, "")) {
      parts.push_back(part_named(fields, pattern, std::string(1, letter)));
    }
  }
  return parts;
}

std::vector<Part> read_parts(const ModelFields& fields) {
  const std::vector<Part> parts = read_parts(fields, "hybrid_override_pattern", "layers_block_type");
  if (parts.empty()) fields.require({"hybrid_override_pattern"});
  const int layers = static_cast<int>(parts.size());
  if (fields.integer_or("num_hidden_layers", 1, kWidest, layers) != layers) {
    throw fields.error("num_hidden_layers", fmt::format("is not the {} layers that are listed", layers));
  }
  return parts;
}

bool mixes(Part part) { return part == Part::mamba || part == Part::attention; }

// What mixes tokens and the network behind it are one layer of ours, with their own numbers.
std::vector<LayerNumbers> joined(const std::vector<Part>& parts) {
  std::vector<LayerNumbers> numbers;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    const bool goes_on =
        !mixes(parts[static_cast<std::size_t>(i)]) && i > 0 && mixes(parts[static_cast<std::size_t>(i) - 1]);
    if (goes_on) {
      numbers.back().ffn = i;
    } else {
      numbers.push_back({i, i});
    }
  }
  return numbers;
}

LayerAttention read_mamba(const ModelFields& fields) {
  fields.require({"mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel"});
  for (const char* key : {"mamba_proj_bias", "mlp_bias"}) {
    if (fields.flag_or(key, false)) refuse(fields, key, "biases of projections");
  }
  if (!fields.flag_or("use_conv_bias", true)) refuse(fields, "use_conv_bias", "convolutions without a bias");
  return {.kind = AttentionKind::mamba,
          .heads = fields.integer("mamba_num_heads", 1, kMostHeads),
          .kv_heads = fields.integer("n_groups", 1, kMostHeads),
          .qk_dim = fields.integer("ssm_state_size", 1, kWidest),
          .v_dim = fields.integer("mamba_head_dim", 1, kWidest),
          .chunk = fields.integer_or("chunk_size", 1, kWidest, 128),
          .conv = fields.integer("conv_kernel", 1, 64),
          .state_bytes = read_state_bytes(fields, "mamba_ssm_cache_dtype")};
}

Layer layer_of(const Architecture& a, const std::vector<Part>& parts, const LayerNumbers& at,
               const LayerAttention& attention, const LayerAttention& mamba) {
  const Part first = parts[static_cast<std::size_t>(at.attention)], last = parts[static_cast<std::size_t>(at.ffn)];
  Layer layer;
  if (mixes(first)) layer.attention = first == Part::mamba ? mamba : attention;
  layer.routed = last == Part::moe;
  if (last == Part::mlp) layer.dense_width = a.intermediate_size;
  return layer;
}

}  // namespace

void delta_net_layers(const ModelFields& fields, Architecture& a) {
  fields.require({"linear_num_value_heads", "linear_num_key_heads", "linear_key_head_dim", "linear_value_head_dim",
                  "linear_conv_kernel_dim"});
  constexpr int kChunk = 64;  // of the kernels that stacks run
  const LayerAttention delta_net = {.kind = AttentionKind::delta_net,
                                    .heads = fields.integer("linear_num_value_heads", 1, kMostHeads),
                                    .kv_heads = fields.integer("linear_num_key_heads", 1, kMostHeads),
                                    .qk_dim = fields.integer("linear_key_head_dim", 1, kWidest),
                                    .v_dim = fields.integer("linear_value_head_dim", 1, kWidest),
                                    .chunk = kChunk,
                                    .conv = fields.integer("linear_conv_kernel_dim", 1, 64),
                                    .state_bytes = read_state_bytes(fields, "mamba_ssm_dtype")};
  if (delta_net.heads % delta_net.kv_heads != 0) {
    throw fields.error("linear_num_key_heads", "must divide linear_num_value_heads");
  }
  const std::vector<bool> linear = linear_by_interval(fields, a);
  for (std::size_t i = 0; i < linear.size(); ++i) {
    if (linear[i]) a.layers[i].attention = delta_net;
  }
  a.mtp_layer = last_full(a);
}

int count_mamba_layers(const ModelFields& fields) { return static_cast<int>(joined(read_parts(fields)).size()); }

void mamba_layers(const ModelFields& fields, Architecture& a) {
  const std::string activation = fields.text_or("mlp_hidden_act", "relu2");
  if (activation != "relu2" && activation != "relu" && activation != "gelu") {
    refuse(fields, "mlp_hidden_act", "feed-forward networks with " + activation.substr(0, 40));
  }
  a.gated_ffn = false;
  a.moe_latent_size = fields.integer_or("moe_latent_size", 0, kWidest, 0);
  const std::vector<Part> parts = read_parts(fields);
  const LayerAttention mamba = read_mamba(fields), attention = a.layers.front().attention;
  a.numbers = joined(parts);
  for (std::size_t i = 0; i < a.layers.size(); ++i) a.layers[i] = layer_of(a, parts, a.numbers[i], attention, mamba);
  if (a.num_nextn_predict_layers == 0) return;
  const std::vector<Part> drafted = read_parts(fields, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  const std::vector<LayerNumbers> numbers = joined(drafted);
  if (numbers.size() != 1) {
    const char* key = fields.has("mtp_layers_block_type") ? "mtp_layers_block_type" : "mtp_hybrid_override_pattern";
    refuse(fields, key, "multi-token prediction by several layers");
  }
  a.mtp_layer = layer_of(a, drafted, numbers.front(), attention, mamba);
}

void kimi_delta_layers(const ModelFields& fields, Architecture& a) {
  const std::optional<Spec> linear = fields.map_or_none("linear_attn_config");
  if (!linear) return fields.require({"linear_attn_config"});
  linear->expect({"full_attn_layers", "kda_layers", "head_dim", "num_heads", "short_conv_kernel_size",
                  "gate_lower_bound", "use_full_rank_gate"});
  const int dim = linear->integer("head_dim", 1, kWidest), heads = linear->integer("num_heads", 1, kMostHeads);
  const bool full_rank = linear->has("use_full_rank_gate") && linear->flag("use_full_rank_gate");
  constexpr int kChunk = 64;
  const LayerAttention kda = {.kind = AttentionKind::kda,
                              .heads = heads,
                              .kv_heads = heads,
                              .qk_dim = dim,
                              .v_dim = dim,
                              .chunk = kChunk,
                              .conv = linear->integer("short_conv_kernel_size", 1, 64),
                              .state_bytes = 4,
                              .gate_rank = full_rank ? 0 : dim};
  const std::vector<int> full = linear->integers("full_attn_layers", 1, a.num_hidden_layers);
  const std::vector<int> listed = linear->integers("kda_layers", 1, a.num_hidden_layers);
  std::vector<bool> seen(a.layers.size());
  for (const int layer : full) seen[static_cast<std::size_t>(layer) - 1] = true;
  for (const int layer : listed) {
    const auto at = static_cast<std::size_t>(layer) - 1;
    if (seen[at])
      throw linear->error("kda_layers", fmt::format("has layer {} twice, or as full_attn_layers has it", layer));
    seen[at] = true;
    a.layers[at].attention = kda;
  }
  if (!std::all_of(seen.begin(), seen.end(), [](bool each) { return each; })) {
    throw linear->error("kda_layers", "and full_attn_layers do not have all layers");
  }
  a.moe_latent_size = fields.integer_or("routed_expert_hidden_size", 0, kWidest, 0);
  a.latent_norm = fields.flag_or("latent_moe_use_norm", false);
  a.attn_res_block_size = fields.integer_or("attn_res_block_size", 0, kWidest, 0);
  a.mtp_layer = last_full(a);
}

void lightning_layers(const ModelFields& fields, Architecture& a) {
  const LayerAttention& full = a.layers.front().attention;
  constexpr int kChunk = 256;
  const LayerAttention lightning = {.kind = AttentionKind::lightning,
                                    .heads = full.heads,
                                    .kv_heads = full.heads,
                                    .qk_dim = full.qk_dim,
                                    .v_dim = full.v_dim,
                                    .chunk = kChunk,
                                    .state_bytes = 4};
  const std::vector<int> types = one_per_layer(fields, "attn_type_list", 0, 1, a);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == 0) a.layers[i].attention = lightning;
  }
}

}  // namespace moeline
