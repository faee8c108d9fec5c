#include "moe/architecture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/memo.hpp"
#include "moe/config_json.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

constexpr int kWidest = 1 << 22;
constexpr int kMostHeads = 4096;

// What config.json files say that changes the arithmetic in ways not modelled here; `harmless` is the value that does
// not.
struct Unmodelled {
  const char* field;
  const char* harmless;
  const char* what;
};
constexpr Unmodelled kUnmodelled[] = {
    {"moe_layer_freq", "1", "dense layers between MoE layers"},
    {"decoder_sparse_step", "1", "dense layers between MoE layers"},
    {"interleave_moe_layer_step", "1", "dense layers between MoE layers"},
    {"intermediate_size_mlp", "", "a second size of dense layers"},
    {"shared_expert_intermediate_size", "0", "a gated shared expert"},
    {"index_topk", "0", "attention to selected tokens"},
    {"full_attention_interval", "1", "linear attention"},
    {"sliding_window_pattern", "1", "a pattern of sliding windows without layer_types"},
};

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* each) { return name == each; });
}

void refuse_unmodelled(const ModelFields& fields) {
  for (const auto& [field, harmless, what] : kUnmodelled) {
    if (!fields.is_config_json() || !fields.has(field)) continue;
    const std::string value = fields.text_or(field, "");
    if (value != harmless) throw fields.error(field, fmt::format("is {}: not modelled ({})", value, what));
  }
}

bool is_routed(const ModelFields& fields) { return fields.has("n_routed_experts") || !fields.expert_field().empty(); }

bool is_mla(const ModelFields& fields) { return fields.has("kv_lora_rank"); }

// Families whose layers are all MoE layers may give one size for all of them.
const char* expert_size(const ModelFields& fields) {
  return fields.has("first_k_dense_replace") ? "moe_intermediate_size" : kExpertSize;
}

void require_fields(const ModelFields& fields) {
  std::vector<std::string> needed = {"num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"};
  if (!fields.is_config_json()) needed.emplace_back("model_type");
  if (is_mla(fields)) {
    needed.insert(needed.end(), {"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"});
    if (!fields.is_null("q_lora_rank")) needed.emplace_back("q_lora_rank");
  } else if (fields.text_or("model_type", "") != "llama") {  // whose first releases knew no other number than heads
    needed.emplace_back("num_key_value_heads");
  }
  if (is_routed(fields)) needed.insert(needed.end(), {"n_routed_experts", "num_experts_per_tok", expert_size(fields)});
  if (!is_routed(fields) || fields.has("first_k_dense_replace")) needed.emplace_back("intermediate_size");
  fields.require(needed);
}

// Our YAML names a family we know; a config.json may be of any, as long as its fields say everything.
std::string read_model_type(const ModelFields& fields) {
  static const std::vector<std::string> families = {"deepseek_v2", "deepseek_v3", "kimi_k2", "qwen3_moe", "glm4_moe",
                                                    "gpt_oss",     "mixtral",     "qwen2",   "llama"};
  std::string type = fields.text_or("model_type", "");
  if (!fields.is_config_json() && std::find(families.begin(), families.end(), type) == families.end()) {
    throw fields.error("model_type", "has an " + unknown_name("value", type, families));
  }
  return type;
}

void read_mla(const ModelFields& fields, Architecture& a) {
  a.kv_lora_rank = fields.integer("kv_lora_rank", 1, kWidest);
  if (!fields.is_null("q_lora_rank")) a.q_lora_rank = fields.integer("q_lora_rank", 1, kWidest);
  a.qk_nope_head_dim = fields.integer("qk_nope_head_dim", 1, kWidest);
  a.qk_rope_head_dim = fields.integer("qk_rope_head_dim", 1, kWidest);
  a.v_head_dim = fields.integer("v_head_dim", 1, kWidest);
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

void read_attention(const ModelFields& fields, Architecture& a) {
  const std::string& type = a.model_type;
  a.num_attention_heads = fields.integer("num_attention_heads", 1, kMostHeads);
  is_mla(fields) ? read_mla(fields, a) : read_gqa(fields, a);
  // What a family always has stands in its code, not in its config.json.
  a.attention_bias = fields.flag_or("attention_bias", type.starts_with("qwen2"));
  a.output_bias = a.attention_bias && !is_one_of(type, {"glm4_moe", "qwen2", "qwen2_moe"});
  a.qk_norm = fields.flag_or("use_qk_norm", type.starts_with("qwen3"));
  a.attention_sinks = type == "gpt_oss";
}

// Layers before the first MoE layer; Qwen lists them.
int read_dense_layers(const ModelFields& fields, int layers) {
  std::vector<int> listed = fields.integers_or_none("mlp_only_layers", 0, layers - 1);
  if (listed.empty()) return fields.integer_or("first_k_dense_replace", 0, layers - 1, 0);
  std::sort(listed.begin(), listed.end());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i] != static_cast<int>(i)) throw fields.error("mlp_only_layers", "must be the first layers");
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

void read_experts(const ModelFields& fields, Architecture& a) {
  a.n_routed_experts = fields.integer("n_routed_experts", 2, 4096);
  a.n_shared_experts = fields.integer_or("n_shared_experts", 0, 64, 0);
  a.num_experts_per_tok = fields.integer("num_experts_per_tok", 1, std::min(64, a.n_routed_experts));
  a.first_k_dense_replace = read_dense_layers(fields, a.num_hidden_layers);
  a.moe_intermediate_size = fields.integer(expert_size(fields), 1, kWidest);
  read_groups(fields, a);
  a.expert_bias = a.model_type == "gpt_oss";
  a.router_bias = is_one_of(a.model_type, {"gpt_oss", "glm4_moe"}) || fields.text_or("topk_method", "") == "noaux_tc";
}

void read_feed_forward(const ModelFields& fields, Architecture& a) {
  if (is_routed(fields)) read_experts(fields, a);
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
      throw fields.error("layer_types", fmt::format("has '{}', which is not modelled", type.substr(0, 40)));
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

// compressed-tensors describes groups of layers; all must be 8-bit floats.
bool is_8bit_float(const Spec& quantization) {
  const Spec groups = quantization.map_or_empty("config_groups");
  const std::vector<std::string> names = groups.keys();
  return !names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const Spec weights = groups.map(name).map("weights");
    return weights.text_or("type", "") == "float" && weights.integer("num_bits", 1, 64) == 8;
  });
}

void read_weight_types(const ModelFields& fields, Architecture& a) {
  const std::optional<Spec> quantization = fields.map_or_none("quantization_config");
  if (!quantization) return;
  if (!fields.is_config_json()) quantization->expect({"quant_method", "weight_block_size"});
  const std::string method = quantization->text("quant_method");
  const bool blocks = quantization->has("weight_block_size") && !quantization->is_null("weight_block_size");
  if (blocks && quantization->integers("weight_block_size", 1, kWidest) != std::vector<int>{128, 128}) {
    throw quantization->error("weight_block_size", "must be [128, 128]");
  }
  if (method == "mxfp4") {
    a.expert_weights = WeightType::mxfp4;
  } else if (is_one_of(method, {"fp8", "fbgemm_fp8"}) ||
             (method == "compressed-tensors" && is_8bit_float(*quantization))) {
    a.weights = a.expert_weights = WeightType::fp8;
  } else {
    throw quantization->error("quant_method", fmt::format("'{}' is not modelled; there is fp8, mxfp4, and BF16 without "
                                                          "quantization_config",
                                                          method.substr(0, 40)));
  }
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

}  // namespace

namespace {

Architecture read_architecture(const fs::path& path) {
  const ModelFields fields = ModelFields::load(path);
  refuse_unmodelled(fields);
  require_fields(fields);
  Architecture a;
  a.name = name_of(path);
  a.model_type = read_model_type(fields);
  a.num_hidden_layers = fields.integer("num_hidden_layers", 1, 10000);
  a.hidden_size = fields.integer("hidden_size", 1, kWidest);
  a.vocab_size = fields.integer("vocab_size", 1, kWidest);
  read_attention(fields, a);
  read_feed_forward(fields, a);
  a.windows = read_windows(fields, a);
  a.num_nextn_predict_layers = fields.integer_or("num_nextn_predict_layers", 0, 16, 0);
  a.tie_word_embeddings = fields.flag_or("tie_word_embeddings", false);
  read_weight_types(fields, a);
  return a;
}

}  // namespace

Architecture load_architecture(const std::string& reference, const fs::path& written_in) {
  static FileMemo<Architecture> known;
  const fs::path path = find_model(reference, written_in);
  return *known.get(path, [&] { return read_architecture(path); });
}

}  // namespace moeline
