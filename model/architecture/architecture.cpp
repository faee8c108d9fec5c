#include "architecture/architecture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "architecture/checkpoint_format.hpp"
#include "architecture/config_keys.hpp"
#include "architecture/model_families.hpp"
#include "base/file.hpp"
#include "base/memo.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

constexpr int kWidest = 1 << 22;
constexpr int kMostHeads = 4096;

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* each) { return name == each; });
}

// Of a value that is read, and that asks for more than is modelled.
[[noreturn]] void refuse(const ModelFields& fields, const std::string& field, const std::string& what) {
  throw fields.error_at(field, not_modelled(what, field));
}

void require_fields(const ModelFields& fields, const ModelFamily& family) {
  std::vector<std::string> needed = {"num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"};
  if (family.mla) {
    needed.insert(needed.end(), {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"});
    if (!fields.is_null("q_lora_rank")) needed.emplace_back("q_lora_rank");
  } else if (family.model_type != "llama") {  // whose first releases knew no other number than heads
    needed.emplace_back("num_key_value_heads");
  }
  if (family.routed) {
    needed.insert(needed.end(), {"n_routed_experts", "num_experts_per_tok", family.expert_size});
  } else {
    needed.emplace_back("intermediate_size");
  }
  fields.require(needed);
}

// Latent attention has no heads of keys and values: what a configuration says of them must follow from the rest.
void check_mla_heads(const ModelFields& fields, const Architecture& a) {
  const int heads = a.num_attention_heads;
  if (fields.integer_or("num_key_value_heads", 1, kMostHeads, heads) != heads) {
    throw fields.error("num_key_value_heads", "must be num_attention_heads in latent attention");
  }
  const int nope = a.qk_nope_head_dim, rope = a.qk_rope_head_dim;
  const int dim = fields.integer_or("head_dim", 1, kWidest, rope);
  if (dim != rope && dim != nope && dim != nope + rope) {
    throw fields.error("head_dim", "must be qk_nope_head_dim, qk_rope_head_dim or their sum");
  }
}

void read_mla(const ModelFields& fields, Architecture& a) {
  a.kv_lora_rank = fields.integer("kv_lora_rank", 1, kWidest);
  if (!fields.is_null("q_lora_rank")) a.q_lora_rank = fields.integer("q_lora_rank", 1, kWidest);
  a.qk_nope_head_dim = fields.integer("qk_nope_head_dim", 1, kWidest);
  a.qk_rope_head_dim = fields.integer("qk_rope_head_dim", 1, kWidest);
  a.v_head_dim = fields.integer("v_head_dim", 1, kWidest);
  check_mla_heads(fields, a);
}

void read_gqa(const ModelFields& fields, Architecture& a) {
  const int heads = a.num_attention_heads;
  a.num_key_value_heads = fields.integer_or("num_key_value_heads", 1, heads, heads);
  if (heads % a.num_key_value_heads != 0) throw fields.error("num_key_value_heads", "must divide num_attention_heads");
  if (!fields.has("head_dim") && a.hidden_size % heads != 0) {
    throw fields.error("head_dim", "is missing, and num_attention_heads does not divide hidden_size");
  }
  a.head_dim = fields.integer_or("head_dim", 1, kWidest, a.hidden_size / heads);
}

QkNorm read_qk_norm(const ModelFields& fields, const ModelFamily& family) {
  if (!fields.flag_or("use_qk_norm", family.qk_norm)) return QkNorm::none;
  const std::string type = fields.text_or("qk_norm_type", "per_head");
  if (!is_one_of(type, {"per_head", "per_layer"})) refuse(fields, "qk_norm_type", "norms of queries and keys " + type);
  return type == "per_head" ? QkNorm::per_head : QkNorm::per_layer;
}

void read_attention(const ModelFields& fields, const ModelFamily& family, Architecture& a) {
  a.num_attention_heads = fields.integer("num_attention_heads", 1, kMostHeads);
  family.mla ? read_mla(fields, a) : read_gqa(fields, a);
  a.attention_bias = fields.flag_or("attention_bias", family.attention_bias);
  a.output_bias = a.attention_bias && family.output_bias;
  a.qk_norm = read_qk_norm(fields, family);
  a.attention_sinks = family.attention_sinks;
}

// Layers before the first MoE layer; Qwen lists them.
int read_dense_layers(const ModelFields& fields, int layers) {
  const int end = fields.integer_or("moe_layer_end_index", -1, kWidest, -1);
  if (end != -1 && end < layers - 1) refuse(fields, "moe_layer_end_index", "dense layers after the MoE layers");
  std::vector<int> listed = fields.integers_or_none("mlp_only_layers", 0, layers - 1);
  if (listed.empty()) return fields.integer_or("first_k_dense_replace", 0, layers - 1, 0);
  std::sort(listed.begin(), listed.end());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i] != static_cast<int>(i)) refuse(fields, "mlp_only_layers", "dense layers between MoE layers");
  }
  if (listed.size() == static_cast<std::size_t>(layers)) throw fields.error("mlp_only_layers", "leaves no MoE layer");
  return static_cast<int>(listed.size());
}

void read_groups(const ModelFields& fields, Architecture& a) {
  if (fields.text_or("topk_method", "") == "greedy") return;  // over all experts
  a.n_group = fields.integer_or("n_group", 1, a.n_routed_experts, 1);
  a.topk_group = fields.integer_or("topk_group", 1, a.n_group, a.n_group);
  if (a.n_routed_experts % a.n_group != 0) throw fields.error("n_group", "must divide n_routed_experts");
  if (a.num_experts_per_tok > a.topk_group * (a.n_routed_experts / a.n_group)) {
    throw fields.error("num_experts_per_tok", "exceeds the experts of topk_group groups");
  }
}

// Shared experts are as large as routed ones; Ling says so once more.
void read_shared_experts(const ModelFields& fields, Architecture& a) {
  constexpr const char* kSize = "moe_shared_expert_intermediate_size";
  a.n_shared_experts = fields.integer_or("n_shared_experts", 0, 64, 0);
  const int size = fields.integer_or(kSize, 0, kWidest, 0);
  if (size != 0 && size != a.moe_intermediate_size) refuse(fields, kSize, "shared experts of a size of their own");
}

void read_experts(const ModelFields& fields, const ModelFamily& family, Architecture& a) {
  a.n_routed_experts = fields.integer("n_routed_experts", 2, 4096);
  a.num_experts_per_tok = fields.integer("num_experts_per_tok", 1, std::min(64, a.n_routed_experts));
  a.first_k_dense_replace = read_dense_layers(fields, a.num_hidden_layers);
  a.moe_intermediate_size = fields.integer(family.expert_size, 1, kWidest);
  read_shared_experts(fields, a);
  read_groups(fields, a);
  a.expert_bias = family.expert_bias;
  a.router_bias =
      fields.flag_or("use_routing_bias", family.router_bias) || fields.text_or("topk_method", "") == "noaux_tc";
}

void read_feed_forward(const ModelFields& fields, const ModelFamily& family, Architecture& a) {
  if (family.routed) read_experts(fields, family, a);
  a.intermediate_size = a.moe_layers() < a.num_hidden_layers ? fields.integer("intermediate_size", 1, kWidest)
                                                             : fields.integer_or("intermediate_size", 1, kWidest, 0);
}

// Qwen2's rule: the layers from max_window_layers on. gpt_oss: every other layer from the first. Else all.
bool is_windowed(const ModelFields& fields, const Architecture& a, int layer) {
  if (a.model_type == "gpt_oss") return layer % 2 == 0;
  return !fields.has("use_sliding_window") || layer >= fields.integer_or("max_window_layers", 0, kWidest, 0);
}

std::vector<int> read_windows(const ModelFields& fields, const Architecture& a) {
  const std::vector<std::string> types = fields.texts_or_none("layer_types");
  for (const std::string& type : types) {
    if (!is_one_of(type, {"full_attention", "sliding_attention"})) {
      refuse(fields, "layer_types", "layers of " + type.substr(0, 40));
    }
  }
  const auto layers = static_cast<std::size_t>(a.num_hidden_layers);
  if (!types.empty() && types.size() != layers) throw fields.error("layer_types", "must have num_hidden_layers values");
  const bool listed = std::find(types.begin(), types.end(), "sliding_attention") != types.end();
  const bool off = !fields.has("sliding_window") || !fields.flag_or("use_sliding_window", true);
  if (types.empty() ? off : !listed) return {};
  const int window = fields.integer("sliding_window", 1, kWidest);
  std::vector<int> windows(layers);
  for (std::size_t i = 0; i < layers; ++i) {
    const bool has = types.empty() ? is_windowed(fields, a, static_cast<int>(i)) : types[i] == "sliding_attention";
    windows[i] = has ? window : 0;
  }
  return windows;
}

int read_mtp(const ModelFields& fields) {
  if (fields.integer_or("mtp_transformer_layers", 0, 64, 1) > 1) {
    refuse(fields, "mtp_transformer_layers", "multi-token prediction by several layers");
  }
  const int modules = fields.integer_or("num_nextn_predict_layers", 0, 16, 0);
  return fields.flag_or("use_mtp", true) ? modules : 0;
}

// A name in the zoo, a YAML file, a .json file, or a folder with a config.json.
fs::path find_model(const std::string& reference, const fs::path& written_in) {
  const fs::path path = beside(written_in, reference);
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    const std::vector<std::string> names = names_in("model/zoo");
    if (std::find(names.begin(), names.end(), reference) == names.end()) return path / "config.json";
  }
  if (path.extension() == ".json" && fs::exists(path, failed)) return path;
  return find_named("model", reference, "model/zoo", written_in);
}

std::string name_of(const fs::path& path) {
  if (path.filename() != "config.json") return path.stem().string();
  return fs::absolute(path).lexically_normal().parent_path().filename().string();
}

Architecture read_architecture(const fs::path& path) {
  const ModelFields fields = ModelFields::load(path);
  if (!fields.is_config_json()) fields.expect(fields_of_families());
  const ModelFamily& family = family_of(fields);
  require_fields(fields, family);
  Architecture a;
  a.name = name_of(path);
  a.model_type = family.model_type;
  a.num_hidden_layers = fields.integer("num_hidden_layers", 1, 10000);
  a.hidden_size = fields.integer("hidden_size", 1, kWidest);
  a.vocab_size = fields.integer("vocab_size", 1, kWidest);
  read_attention(fields, family, a);
  read_feed_forward(fields, family, a);
  a.windows = read_windows(fields, a);
  a.num_nextn_predict_layers = read_mtp(fields);
  a.tie_word_embeddings = fields.flag_or("tie_word_embeddings", false);
  a.towers = fields.towers();
  store_as(read_checkpoint_format(fields), a);
  return a;
}

}  // namespace

Architecture load_architecture(const std::string& reference, const fs::path& written_in) {
  static FileMemo<Architecture> known;
  const fs::path path = find_model(reference, written_in);
  return *known.get(path, [&] { return read_architecture(path); });
}

}  // namespace moeline
