#include "architecture/model_families.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "architecture/config_keys.hpp"
#include "architecture/read_layers.hpp"
#include "base/error.hpp"

namespace moeline {
namespace {

using Fields = std::set<std::string>;

Fields operator+(Fields a, const Fields& b) {
  a.insert(b.begin(), b.end());
  return a;
}

const Fields kDecoder = {"model_type",          "num_hidden_layers", "hidden_size",
                         "intermediate_size",   "vocab_size",        "num_attention_heads",
                         "tie_word_embeddings", "attention_bias",    "quantization_config"};
// Latent attention has as many keys and values as heads, of dimensions that follow from the latent's.
const Fields kMla = kDecoder + Fields{"q_lora_rank", "kv_lora_rank",        "qk_nope_head_dim", "qk_rope_head_dim",
                                      "v_head_dim",  "num_key_value_heads", "head_dim"};
const Fields kGqa = kDecoder + Fields{"num_key_value_heads", "head_dim"};
const Fields kWindows = {"sliding_window", "layer_types"};
const Fields kSomeWindows = kWindows + Fields{"use_sliding_window", "max_window_layers"};
const Fields kExperts = {"n_routed_experts", "num_experts_per_tok"};
const Fields kSizedExperts = kExperts + Fields{"moe_intermediate_size"};
const Fields kShared = {"n_shared_experts", "first_k_dense_replace"};
const Fields kGroups = {"n_group", "topk_group", "topk_method"};
const Fields kMtp = {"num_nextn_predict_layers"};
const Fields kIndexer = {"index_n_heads", "index_head_dim", "index_topk", "moe_layer_freq"};
const Fields kSharedSize = {"n_shared_experts", "shared_expert_intermediate_size"};
const Fields kQwen = kGqa + kSomeWindows;
const Fields kQwenMoe = kQwen + kSizedExperts + Fields{"mlp_only_layers", "decoder_sparse_step", "use_qk_norm"};
const Fields kDeltaNet =
    kGqa + kMtp + Fields{"full_attention_interval", "layer_types",          "linear_conv_kernel_dim",
                         "linear_key_head_dim",     "linear_num_key_heads", "linear_num_value_heads",
                         "linear_value_head_dim",   "mamba_ssm_dtype",      "attn_output_gate"};
const Fields kDeltaNetMoe =
    kDeltaNet + kSizedExperts + Fields{"shared_expert_intermediate_size", "mlp_only_layers", "decoder_sparse_step"};
const Fields kMamba = {"hybrid_override_pattern",
                       "layers_block_type",
                       "mamba_num_heads",
                       "mamba_head_dim",
                       "ssm_state_size",
                       "conv_kernel",
                       "n_groups",
                       "chunk_size",
                       "mamba_ssm_cache_dtype",
                       "mamba_proj_bias",
                       "use_conv_bias",
                       "mlp_bias",
                       "mlp_hidden_act",
                       "moe_latent_size",
                       "mtp_hybrid_override_pattern",
                       "mtp_layers_block_type"};
const Fields kDeepSeek = kMla + kSizedExperts + kShared + kGroups;

// DeepSeek's own name, and that of the checkpoints that SGLang converted.
ModelFamily compressed(const char* model_type) {
  return {.model_type = model_type,
          .reads = kGqa + kSizedExperts + kIndexer + kMtp +
                   Fields{"n_shared_experts", "topk_method", "q_lora_rank", "o_lora_rank", "o_groups",
                          "qk_rope_head_dim", "sliding_window", "compress_ratios", "hc_mult", "hc_sinkhorn_iters",
                          "num_hash_layers", "expert_dtype"},
          .routed = true,
          .fp8_cache = true,
          .refine = compressed_layers};
}

ModelFamily delta_net_moe(const char* model_type) {
  return {.model_type = model_type,
          .reads = kDeltaNetMoe,
          .routed = true,
          .qk_norm = true,
          .gated_attention = true,
          .shared_gate = true,
          .layer_types = {"linear_attention"},
          .refine = delta_net_layers};
}

const std::vector<ModelFamily>& families() {
  static const std::vector<ModelFamily> all = {
      {.model_type = "bailing_moe",
       .reads = kGqa + kSizedExperts + kShared + kGroups + kMtp +
                Fields{"use_qk_norm", "use_routing_bias", "shared_expert_intermediate_size"},
       .routed = true},
      {.model_type = "deepseek_v2", .reads = kDeepSeek, .mla = true, .routed = true},
      {.model_type = "deepseek_v3", .reads = kDeepSeek + kMtp, .mla = true, .routed = true},
      {.model_type = "deepseek_v32",
       .reads = kDeepSeek + kMtp + kIndexer,
       .mla = true,
       .routed = true,
       .refine = indexed_layers},
      compressed("deepseek_v4"),
      compressed("deepseek_ref"),
      {.model_type = "ernie4_5_moe",
       .reads = kGqa + kSizedExperts + kShared + kMtp +
                Fields{"use_routing_bias", "moe_layer_end_index", "moe_layer_interval"},
       .routed = true},
      {.model_type = "gemma4_text",
       .reads = kGqa + kWindows + kSizedExperts +
                Fields{"global_head_dim", "num_global_key_value_heads", "attention_k_eq_v", "enable_moe_block",
                       "hidden_size_per_layer_input", "vocab_size_per_layer_input", "use_bidirectional_attention"},
       .routed = true,
       .may_be_dense = true,
       .qk_norm = true,
       .tied_embeddings = true,
       .refine = gemma4_layers},
      {.model_type = "glm4_moe",
       .reads = kGqa + kSizedExperts + kShared + kGroups + kMtp + Fields{"use_qk_norm"},
       .routed = true,
       .output_bias = false,
       .router_bias = true},
      {.model_type = "glm_moe_dsa",
       .reads = kDeepSeek + kMtp + kIndexer +
                Fields{"qk_head_dim", "mlp_layer_types", "indexer_types", "index_topk_freq", "index_skip_topk_offset",
                       "layer_types"},
       .mla = true,
       .routed = true,
       .layer_types = {"deepseek_sparse_attention"},
       .refine = indexed_layers},
      {.model_type = "gpt_oss",
       .reads = kGqa + kWindows + kExperts,
       .routed = true,
       .expert_size = "intermediate_size",
       .attention_sinks = true,
       .expert_bias = true,
       .router_bias = true},
      {.model_type = "hunyuan_v1_moe",
       .reads = kGqa + kSizedExperts + Fields{"n_shared_experts", "use_mixed_mlp_moe", "use_qk_norm"},
       .routed = true},
      {.model_type = "kimi_k2", .reads = kDeepSeek + kMtp, .mla = true, .routed = true},
      {.model_type = "kimi_linear",
       .reads = kDeepSeek + kMtp +
                Fields{"linear_attn_config", "attn_output_gate", "routed_expert_hidden_size", "latent_moe_use_norm",
                       "attn_res_block_size", "moe_layer_freq"},
       .mla = true,
       .routed = true,
       .refine = kimi_delta_layers},
      {.model_type = "llama", .reads = kGqa, .lacks = {"num_key_value_heads"}},  // its first releases knew heads alone
      {.model_type = "llama4_text",
       .reads = kGqa + kExperts +
                Fields{"attention_chunk_size", "no_rope_layers", "interleave_moe_layer_step", "intermediate_size_mlp",
                       "use_qk_norm"},
       .routed = true,
       .expert_size = "intermediate_size",
       .dense_size = "intermediate_size_mlp",
       .refine = llama4_layers},
      {.model_type = "longcat_flash",
       .reads =
           kMla + kSizedExperts +
           Fields{"num_layers", "ffn_hidden_size", "expert_ffn_hidden_size", "zero_expert_num", "zero_expert_type"},
       .mla = true,
       .routed = true,
       .lacks = {"num_hidden_layers", "moe_intermediate_size"},
       .expert_size = "expert_ffn_hidden_size",
       .dense_size = "ffn_hidden_size",
       .router_bias = true,
       .count_layers = count_shortcut_layers,
       .refine = shortcut_layers},
      {.model_type = "mimo", .reads = kQwen + kMtp, .attention_bias = true, .output_bias = false},
      {.model_type = "mimo_v2_flash",
       .reads = kGqa + kSizedExperts + kShared + kGroups +
                Fields{"hybrid_layer_pattern", "moe_layer_freq", "sliding_window", "sliding_window_size",
                       "attention_chunk_size", "swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim",
                       "swa_v_head_dim", "v_head_dim", "add_swa_attention_sink_bias", "add_full_attention_sink_bias"},
       .routed = true,
       .refine = mimo_layers},
      {.model_type = "minimax_m2",
       .reads = kGqa + kWindows + kExperts + kMtp +
                Fields{"use_qk_norm", "qk_norm_type", "use_routing_bias", "use_mtp", "mtp_transformer_layers",
                       "num_mtp_modules"},
       .routed = true,
       .expert_size = "intermediate_size"},
      {.model_type = "minimax_m3",
       .reads = kGqa + kSizedExperts + kShared + kSharedSize + kMtp +
                Fields{"use_qk_norm", "qk_norm_type", "use_routing_bias", "dense_intermediate_size", "moe_layer_freq",
                       "num_mtp_modules", "sparse_attention_config"},
       .routed = true,
       .dense_size = "dense_intermediate_size",
       .refine = block_indexed_layers},
      {.model_type = "minimax_text_01",
       .reads = kGqa + kExperts + Fields{"attn_type_list"},
       .routed = true,
       .expert_size = "intermediate_size",
       .refine = lightning_layers},
      {.model_type = "mistral", .reads = kGqa + kWindows},
      {.model_type = "mixtral",
       .reads = kGqa + kWindows + kExperts,
       .routed = true,
       .expert_size = "intermediate_size"},
      {.model_type = "nemotron-nas",
       .reads = kGqa + Fields{"block_configs"},
       .lacks = {"num_key_value_heads", "intermediate_size"},
       .refine = searched_layers},
      {.model_type = "nemotron_h",
       .reads = kGqa + kSizedExperts + kSharedSize + kGroups + kMtp + kMamba,
       .routed = true,
       .may_be_dense = true,
       .lacks = {"num_hidden_layers"},
       .router_bias = true,
       .count_layers = count_mamba_layers,
       .refine = mamba_layers},
      {.model_type = "qwen2", .reads = kQwen, .attention_bias = true, .output_bias = false},
      {.model_type = "qwen3", .reads = kQwen, .qk_norm = true},
      delta_net_moe("qwen3_5_moe_text"),
      {.model_type = "qwen3_5_text",
       .reads = kDeltaNet,
       .qk_norm = true,
       .gated_attention = true,
       .layer_types = {"linear_attention"},
       .refine = delta_net_layers},
      {.model_type = "qwen3_moe", .reads = kQwenMoe, .routed = true, .qk_norm = true},
      delta_net_moe("qwen3_next"),
      {.model_type = "qwen3_vl_text", .reads = kQwen, .qk_norm = true},
      {.model_type = "qwen3_vl_moe_text", .reads = kQwenMoe, .routed = true, .qk_norm = true},
      {.model_type = "step3p7",
       .reads = kGqa + kWindows + kSizedExperts + kShared + kMtp +
                Fields{"shared_expert_intermediate_size", "use_routing_bias"},
       .routed = true},
  };
  return all;
}

// Families that wrap one of the above, and add nothing to its language model.
const std::set<std::string>& wrappers() {
  static const std::set<std::string> all = {"gemma4",  "kimi_k25",    "kimi_k3",  "llama4",
                                            "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe"};
  return all;
}

// In a list, a zero may mean something beside a one: it asks unless all of it is harmless.
bool asks(const ModelFields::Key& key, const KeyMeaning* meaning) {
  const auto all = [&](const auto& is) { return std::all_of(key.words.begin(), key.words.end(), is); };
  if (meaning == nullptr || meaning->harmless.empty() || key.words.size() <= 1) {
    if (all(says_nothing)) return false;
  }
  return meaning == nullptr || !all([&](const std::string& word) {
           return std::find(meaning->harmless.begin(), meaning->harmless.end(), word) != meaning->harmless.end();
         });
}

const KeyMeaning* meaning_of(const std::string& key) {
  const auto table = key_meanings();
  const auto is = [&](const std::string& name) {
    return std::find_if(table.begin(), table.end(), [&](const KeyMeaning& each) { return each.key == name; });
  };
  auto found = is(key);
  if (found == table.end()) found = is(field_of(key));
  return found == table.end() ? nullptr : &*found;
}

// What asks for something that a family does not read, in the order of the table of meanings; keys that nobody has met
// come last.
struct Refused {
  const KeyMeaning* meaning;
  std::string key;
};

std::vector<Refused> refused_keys(const ModelFields& fields, const Fields& reads) {
  std::vector<Refused> refused;
  for (const ModelFields::Key& key : fields.keys()) {
    if (is_neutral(key.name) || reads.contains(key.name) || reads.contains(field_of(key.name))) continue;
    const KeyMeaning* meaning = meaning_of(key.name);
    if (asks(key, meaning)) refused.push_back({meaning, key.name});
  }
  const KeyMeaning* end = key_meanings().data() + key_meanings().size();
  const auto rank = [&](const Refused& each) { return each.meaning == nullptr ? end : each.meaning; };
  std::stable_sort(refused.begin(), refused.end(),
                   [&](const Refused& a, const Refused& b) { return rank(a) < rank(b); });
  return refused;
}

// One phrase for each part of an architecture, with the first key that asks for it.
std::vector<std::string> phrases(const std::vector<Refused>& refused) {
  std::set<std::string> said;
  std::vector<std::string> list;
  for (const auto& [meaning, key] : refused) {
    const std::string what = meaning == nullptr ? "what an unknown key asks for" : meaning->what;
    if (meaning == nullptr || said.insert(what).second) list.push_back(fmt::format("{} ({})", what, key));
  }
  return list;
}

void refuse_unread(const ModelFields& fields, const Fields& reads) {
  const std::vector<Refused> refused = refused_keys(fields, reads);
  if (refused.empty()) return;
  throw fields.error_at(refused.front().key, fmt::format("not modelled: {}", fmt::join(phrases(refused), ", ")));
}

// Null where no family has that name.
const ModelFamily* known_family(const std::string& model_type) {
  const auto family = std::find_if(families().begin(), families().end(),
                                   [&](const ModelFamily& each) { return each.model_type == model_type; });
  return family == families().end() ? nullptr : &*family;
}

// What some family reads: of a family that we do not know, none of this is what is missing.
Fields read_by_some() {
  Fields all;
  for (const ModelFamily& family : families()) all = all + family.reads;
  return all;
}

// What an unknown family is made of says more than its name does.
[[noreturn]] void refuse_family(const ModelFields& fields, const std::string& named_at, const std::string& type) {
  std::vector<Refused> refused = refused_keys(fields, read_by_some());
  std::erase_if(refused, [](const Refused& each) { return each.meaning == nullptr; });
  if (refused.empty()) {
    throw fields.error_at(named_at, "not modelled: " + unknown_name("model_type", type, model_types()));
  }
  throw fields.error_at(refused.front().key, fmt::format("not modelled: {}, model_type {}",
                                                         fmt::join(phrases(refused), ", "), type.substr(0, 40)));
}

}  // namespace

std::vector<std::string> model_types() {
  std::vector<std::string> names;
  for (const ModelFamily& family : families()) names.push_back(family.model_type);
  return names;
}

std::vector<std::string> parts_of_family(const std::string& model_type) {
  const ModelFamily* family = known_family(model_type);
  MOELINE_CHECK(family != nullptr, model_type);
  const auto reads = [](const KeyMeaning& meaning) {
    return [&](const ModelFamily& each) { return each.reads.contains(meaning.key); };
  };
  std::vector<std::string> parts;
  for (const KeyMeaning& meaning : key_meanings()) {
    const bool known = std::find(parts.begin(), parts.end(), meaning.what) != parts.end();
    const bool everyones = std::all_of(families().begin(), families().end(), reads(meaning));
    if (!known && !everyones && reads(meaning)(*family)) parts.emplace_back(meaning.what);
  }
  return parts;
}

const ModelFamily& family_of(const ModelFields& fields) {
  const std::string outer = fields.wrapper_type();
  if (!outer.empty() && !wrappers().contains(outer)) refuse_family(fields, "text_config", outer);
  fields.require({"model_type"});
  const std::string type = fields.text_or("model_type", "");
  const ModelFamily* family = known_family(type);
  if (family == nullptr) refuse_family(fields, "model_type", type);
  refuse_unread(fields, family->reads);
  return *family;
}

std::vector<std::string> fields_of_families() {
  std::vector<std::string> fields;
  for (const std::string& field : read_by_some()) {
    const std::vector<std::string> names = names_of(field);
    fields.insert(fields.end(), names.begin(), names.end());
  }
  return fields;
}

}  // namespace moeline
