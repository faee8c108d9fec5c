#include "architecture/architecture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "architecture/checkpoint_format.hpp"
#include "architecture/config_keys.hpp"
#include "architecture/read_layers.hpp"
#include "base/file.hpp"
#include "base/memo.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLayers = 10000;

void require_fields(const ModelFields& fields, const ModelFamily& family) {
  std::vector<std::string> needed = {"num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"};
  if (family.mla) {
    needed.insert(needed.end(), {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"});
    if (!fields.is_null("q_lora_rank")) needed.emplace_back("q_lora_rank");
  } else {
    needed.emplace_back("num_key_value_heads");
  }
  if (has_experts(fields, family)) {
    needed.insert(needed.end(), {"n_routed_experts", "num_experts_per_tok", family.expert_size});
  } else {
    needed.push_back(family.dense_size);
  }
  std::erase_if(needed, [&](const std::string& field) { return family.lacks.contains(field); });
  fields.require(needed);
}

int read_mtp(const ModelFields& fields) {
  if (fields.integer_or("mtp_transformer_layers", 0, 64, 1) > 1) {
    refuse(fields, "mtp_transformer_layers", "multi-token prediction by several layers");
  }
  const int stored = fields.integer_or("num_mtp_modules", 0, 64, 0);
  const int modules = fields.integer_or("num_nextn_predict_layers", 0, 16, stored);
  if (fields.has("num_mtp_modules") && modules > stored) {
    throw fields.error("num_nextn_predict_layers", "is more than num_mtp_modules");
  }
  return fields.flag_or("use_mtp", true) ? modules : 0;
}

// A name in the zoo, a YAML file, a .json file, or a folder with a config.json.
fs::path find_model(const std::string& reference, const fs::path& written_in) {
  if (is_stdin(reference) || given_text(reference)) return reference;
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
  a.num_hidden_layers = family.count_layers != nullptr ? family.count_layers(fields)
                                                       : fields.integer("num_hidden_layers", 1, kMostLayers);
  a.layers.resize(static_cast<std::size_t>(a.num_hidden_layers));
  a.hidden_size = fields.integer("hidden_size", 1, kWidest);
  a.vocab_size = fields.integer("vocab_size", 1, kWidest);
  a.num_nextn_predict_layers = read_mtp(fields);
  a.tie_word_embeddings = fields.flag_or("tie_word_embeddings", family.tied_embeddings);
  read_attention(fields, family, a);
  read_feed_forward(fields, family, a);
  a.mtp_layer = a.layers.back();
  if (family.refine != nullptr) family.refine(fields, a);
  a.towers = fields.towers();
  store_as(read_checkpoint_format(fields), a);
  if (family.fp8_cache) a.kv_cache = Precision::fp8;
  return a;
}

}  // namespace

int Architecture::moe_layers_before(int layer) const {
  const auto routed = [](const Layer& each) { return each.routed; };
  return static_cast<int>(std::count_if(layers.begin(), layers.begin() + layer, routed));
}

int Architecture::first_main_layer() const {
  const auto end = layers.begin() + num_hidden_layers;  // of a folded model fewer than there are
  const auto first = std::find_if(layers.begin(), end, [](const Layer& layer) { return layer.routed; });
  return first == end ? 0 : static_cast<int>(first - layers.begin());
}

Architecture load_architecture(const std::string& reference, const fs::path& written_in) {
  static FileMemo<Architecture> known;
  const fs::path path = find_model(reference, written_in);
  return *known.get(path, [&] { return read_architecture(path); });
}

}  // namespace moeline
