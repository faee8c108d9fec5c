#include "moe/config_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/file.hpp"

namespace moeline {
namespace {

// What our YAML may hold: the fields of a config.json that are read here, and nothing else.
const std::vector<std::string>& known_fields() {
  static const std::vector<std::string> fields = {"model_type",
                                                  "num_hidden_layers",
                                                  "hidden_size",
                                                  "intermediate_size",
                                                  "n_routed_experts",
                                                  "moe_intermediate_size",
                                                  "num_experts",
                                                  "num_local_experts",
                                                  "n_shared_experts",
                                                  "num_experts_per_tok",
                                                  "experts_per_token",
                                                  "first_k_dense_replace",
                                                  "mlp_only_layers",
                                                  "n_group",
                                                  "topk_group",
                                                  "topk_method",
                                                  "num_attention_heads",
                                                  "num_key_value_heads",
                                                  "head_dim",
                                                  "q_lora_rank",
                                                  "kv_lora_rank",
                                                  "qk_nope_head_dim",
                                                  "qk_rope_head_dim",
                                                  "v_head_dim",
                                                  "attention_bias",
                                                  "use_qk_norm",
                                                  "sliding_window",
                                                  "use_sliding_window",
                                                  "max_window_layers",
                                                  "layer_types",
                                                  "vocab_size",
                                                  "num_nextn_predict_layers",
                                                  "tie_word_embeddings",
                                                  "quantization_config"};
  return fields;
}

// Names that model families gave to one thing, ours first.
std::vector<std::string> names_of(const std::string& field) {
  if (field == "n_routed_experts") return {field, "num_experts", "num_local_experts"};
  if (field == "num_experts_per_tok") return {field, "experts_per_token"};
  if (field == kExpertSize) return {"moe_intermediate_size", "intermediate_size"};
  return {field};
}

bool stands(const Spec& spec, const std::string& name) { return spec.has(name) && !spec.is_null(name); }

}  // namespace

std::string json_as_yaml(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');  // JSON has no tabs inside strings
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at + 2)) {
    const std::string_view escape = std::string_view(text).substr(at, 6);  // \uD800 to \uDFFF
    if (escape.size() == 6 && escape[1] == 'u' && (escape[2] | 0x20) == 'd' &&
        std::string_view("89abABcdefCDEF").find(escape[3]) != std::string_view::npos) {
      text.replace(at, 6, "?     ");
    }
  }
  return text;
}

ModelFields::ModelFields(Spec inner, Spec outer, bool is_config_json)
    : inner_(std::move(inner)), outer_(std::move(outer)), is_config_json_(is_config_json) {}

ModelFields ModelFields::load(const std::filesystem::path& path) {
  if (path.extension() != ".json") {
    const Spec spec = Spec::load(path);
    spec.expect(known_fields());
    return {spec, spec, false};
  }
  const Spec outer = Spec::parse(path.string(), json_as_yaml(read_text(path)));
  return {stands(outer, "text_config") ? outer.map("text_config") : outer, outer, true};
}

ModelFields::Place ModelFields::find(const std::string& field) const {
  for (const std::string& name : names_of(field)) {
    if (stands(inner_, name)) return {&inner_, name, true};
    if (stands(outer_, name)) return {&outer_, name, true};
  }
  return {&inner_, names_of(field).front(), false};
}

bool ModelFields::has(const std::string& field) const { return find(field).found; }

bool ModelFields::is_null(const std::string& field) const {
  return !has(field) && (inner_.is_null(field) || outer_.is_null(field));
}

void ModelFields::require(const std::vector<std::string>& fields) const {
  std::vector<std::string> missing;
  for (const std::string& field : fields) {
    if (has(field)) continue;
    const std::vector<std::string> names = names_of(field);
    const std::vector<std::string> others(names.begin() + 1, names.end());
    missing.push_back(others.empty() ? field : fmt::format("{} (or {})", names.front(), fmt::join(others, ", ")));
  }
  if (missing.empty()) return;
  const bool wrapped = is_config_json_ && stands(outer_, "text_config");
  throw outer_.error(
      fmt::format("{}", fmt::join(missing, ", ")),
      fmt::format("{} missing{}", missing.size() == 1 ? "is" : "are", wrapped ? " in text_config and around it" : ""));
}

int ModelFields::integer(const std::string& field, int low, int high) const {
  require({field});
  const Place place = find(field);
  return place.spec->integer(place.name, low, high);
}

int ModelFields::integer_or(const std::string& field, int low, int high, int fallback) const {
  const Place place = find(field);
  return place.found ? place.spec->integer(place.name, low, high) : fallback;
}

bool ModelFields::flag_or(const std::string& field, bool fallback) const {
  const Place place = find(field);
  return place.found ? place.spec->flag(place.name) : fallback;
}

std::string ModelFields::text_or(const std::string& field, const std::string& fallback) const {
  const Place place = find(field);
  return place.found ? place.spec->text(place.name) : fallback;
}

std::vector<int> ModelFields::integers_or_none(const std::string& field, int low, int high) const {
  const Place place = find(field);
  return place.found ? place.spec->integers(place.name, low, high) : std::vector<int>();
}

std::vector<std::string> ModelFields::texts_or_none(const std::string& field) const {
  const Place place = find(field);
  return place.found ? place.spec->texts(place.name) : std::vector<std::string>();
}

std::optional<Spec> ModelFields::map_or_none(const std::string& field) const {
  const Place place = find(field);
  return place.found ? std::optional(place.spec->map(place.name)) : std::nullopt;
}

std::string ModelFields::expert_field() const {
  for (const std::string& key : inner_.keys()) {
    const bool named = key.find("expert") != std::string::npos || key.starts_with("moe_");
    if (named && stands(inner_, key)) return key;
  }
  return "";
}

SpecError ModelFields::error(const std::string& field, std::string_view message) const {
  const Place place = find(field);
  return place.spec->error(place.name, message);
}

}  // namespace moeline
