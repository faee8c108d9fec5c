#include "architecture/checkpoint_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "architecture/config_keys.hpp"
#include "architecture/matrices.hpp"
#include "architecture/parameters.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

constexpr int kWidest = 1 << 22;

struct Format {
  Precision type = Precision::bf16;
  double bytes = 2;
  bool operator==(const Format&) const = default;
};

Format standard(Precision type) { return {type, bytes_per_weight(type)}; }

// `beside`: bits of a scale, and of a zero point where there is one, per group of weights.
Format int4(double beside, int group) { return {Precision::int4, (4 + beside / group) / 8}; }

[[noreturn]] void refuse(const Spec& spec, const std::string& key, const std::string& what) {
  throw spec.error_at(key, not_modelled(what, key));
}

// ModelOpt's names of what it does to linear layers.
Format format_named(const Spec& spec, const std::string& key) {
  if (!spec.stands(key)) return {};
  const std::string algorithm = spec.text(key);
  constexpr int kAwqGroup = 128;
  if (algorithm == "FP8") return standard(Precision::fp8);
  if (algorithm == "NVFP4") return standard(Precision::nvfp4);
  if (algorithm == "W4A16_AWQ") return int4(16, kAwqGroup);
  if (algorithm == "MIXED_PRECISION") refuse(spec, key, "formats that differ from layer to layer");
  refuse(spec, key, fmt::format("weights of {}", algorithm.substr(0, 40)));
}

// A group of compressed-tensors, whose scheme ModelOpt shares.
Format format_of_group(const Spec& groups, const std::string& name) {
  const Spec weights = groups.map(name).map("weights");
  const int bits = weights.integer("num_bits", 1, 64);
  const std::string type = weights.text_or("type", "");
  const int group = weights.stands("group_size") ? weights.integer("group_size", 1, kWidest) : kWidest;
  if (bits == 8 && type == "float") return standard(Precision::fp8);
  if (bits == 4 && type == "float" && group == 16) return standard(Precision::nvfp4);
  if (bits == 4 && type == "float" && group == 32) return standard(Precision::mxfp4);
  if (bits == 4 && type == "int") return int4(16, group);
  refuse(weights, "num_bits", fmt::format("weights of {} bits, type {}", bits, type.substr(0, 40)));
}

Format format_of_groups(const Spec& quantization) {
  const Spec groups = quantization.map("config_groups");
  const std::vector<std::string> names = groups.keys();
  if (names.empty()) throw quantization.error("config_groups", "is empty");
  const Format first = format_of_group(groups, names.front());
  for (const std::string& name : names) {
    if (format_of_group(groups, name) == first) continue;
    refuse(quantization, "config_groups", "formats that differ from layer to layer");
  }
  return first;
}

Format fp8_blocks(const Spec& quantization) {
  const bool blocks = quantization.stands("weight_block_size");
  if (blocks && quantization.integers("weight_block_size", 1, kWidest) != std::vector<int>{128, 128}) {
    throw quantization.error("weight_block_size", "must be [128, 128]");
  }
  return standard(Precision::fp8);
}

// AWQ and GPTQ: 16 bits of scale and 4 of zero point per group.
Format int4_with_zeros(const Spec& quantization) {
  const std::string bits = quantization.has("w_bit") ? "w_bit" : "bits";
  if (const int count = quantization.integer(bits, 1, 64); count != 4) {
    refuse(quantization, bits, fmt::format("integers of {} bits", count));
  }
  const int group = quantization.integer("group_size", -1, kWidest);
  return int4(16 + 4, group > 0 ? group : kWidest);
}

// ModelOpt may write both, of which the groups say more.
Format format_by_algorithm(const Spec& quantization) {
  const Format named = format_named(quantization, "quant_algo");
  return quantization.has("config_groups") ? format_of_groups(quantization) : named;
}

Format format_by_method(const Spec& quantization) {
  if (quantization.has("quant_algo")) return format_by_algorithm(quantization);
  const std::string method = quantization.text_or("quant_method", "");
  if (method.empty()) throw quantization.error("quant_method", "is not there to say which");
  if (method == "fp8" || method == "fbgemm_fp8") return fp8_blocks(quantization);
  if (method == "mxfp4") return standard(Precision::mxfp4);
  if (method == "awq" || method == "gptq") return int4_with_zeros(quantization);
  if (method == "compressed-tensors" || method == "modelopt") return format_of_groups(quantization);
  refuse(quantization, "quant_method", fmt::format("weights of {}", method.substr(0, 40)));
}

// Each quantizer has its own word for the modules that it leaves alone.
NamePatterns kept_modules(const Spec& quantization) {
  std::vector<std::string> kept;
  for (const char* key : {"modules_to_not_convert", "ignore", "exclude_modules"}) {
    if (!quantization.stands(key)) continue;
    const std::vector<std::string> more = quantization.texts(key);
    kept.insert(kept.end(), more.begin(), more.end());
  }
  try {
    return NamePatterns(kept);
  } catch (const std::invalid_argument& error) {
    throw quantization.error("ignore", fmt::format("has '{}', which is no regular expression", error.what()));
  }
}

Precision kv_cache_of(const Spec& quantization) {
  const char* algorithm = "kv_cache_quant_algo";
  const std::string named = quantization.stands(algorithm) ? quantization.text(algorithm) : "";
  if (named == "NVFP4") refuse(quantization, algorithm, "a KV cache of four bits");
  return quantization.stands("kv_cache_scheme") || named == "FP8" ? Precision::fp8 : Precision::bf16;
}

CheckpointFormat described(const Spec& quantization, const Format& format) {
  CheckpointFormat result{format.type, format.bytes, false, kept_modules(quantization), kv_cache_of(quantization)};
  result.experts_alone = quantization.text_or("quant_method", "") == "mxfp4";
  return result;
}

// The file beside config.json, as a mapping of what it says about quantization.
std::optional<Spec> modelopt_file(const ModelFields& fields) {
  const fs::path file = fields.path().parent_path() / "hf_quant_config.json";
  std::error_code failed;
  if (fields.path().filename() != "config.json" || !fs::exists(file, failed)) return std::nullopt;
  return Spec::parse(file.string(), json_as_yaml(read_text(file))).map("quantization");
}

// One kind of module, and the layers that have it.
struct Kind {
  const char* module;
  bool mtp;
  int first, end;
  std::vector<Matrix> matrices;
};

std::vector<Kind> kinds_of(const Architecture& a) {
  const int layers = a.num_hidden_layers;
  const int dense = a.dense_layers();
  const int all = layers + a.num_nextn_predict_layers;
  std::vector<Kind> kinds = {{kAttention, false, 0, layers, attention_matrices(a)},
                             {kAttention, true, layers, all, attention_matrices(a)},
                             {kDenseFfn, false, 0, dense, dense_matrices(a)}};
  if (a.n_routed_experts == 0) {
    kinds.push_back({kDenseFfn, true, layers, all, dense_matrices(a)});
    return kinds;
  }
  kinds.push_back({kRoutedExperts, false, dense, layers, expert_matrices(a)});
  kinds.push_back({kRoutedExperts, true, layers, all, expert_matrices(a)});
  if (a.n_shared_experts > 0) {
    kinds.push_back({kSharedExperts, false, dense, layers, shared_matrices(a)});
    kinds.push_back({kSharedExperts, true, layers, all, shared_matrices(a)});
  }
  return kinds;
}

bool is_kept(const CheckpointFormat& format, const Kind& kind, int layer, const Matrix& matrix) {
  if (format.experts_alone) return kind.module != std::string(kRoutedExperts);
  return std::any_of(matrix.names.begin(), matrix.names.end(), [&](const std::string& name) {
    return format.kept.match(fmt::format("layers.{}.{}", layer, name));
  });
}

// The parameters of a kind, of all its layers, and those of them that stay in BF16.
struct Share {
  double kept = 0, all = 0;
  std::vector<std::string> kept_matrices, others;  // by name; both empty where one is kept in some of the layers alone
};

// "o_proj" of "self_attn.o_proj"
std::string short_name(const Matrix& matrix) {
  const std::string& name = matrix.names.front();
  return name.substr(name.rfind('.') + 1);
}

Share share_of(const CheckpointFormat& format, const Kind& kind) {
  Share share;
  bool by_matrix = true;
  for (const Matrix& matrix : kind.matrices) {
    int kept = 0;
    for (int layer = kind.first; layer < kind.end; ++layer) kept += is_kept(format, kind, layer, matrix) ? 1 : 0;
    const int layers = kind.end - kind.first;
    share.all += layers * matrix.parameters;
    share.kept += kept * matrix.parameters;
    by_matrix = by_matrix && (kept == 0 || kept == layers);
    (kept > 0 ? share.kept_matrices : share.others).push_back(short_name(matrix));
  }
  if (!by_matrix) share.kept_matrices = share.others = {};
  return share;
}

bool is_routed(const StoredWeights& part) { return part.module == kRoutedExperts; }

// Attention's output projection has one format and the others have another, in every layer.
bool divides_at_output(const StoredWeights& part, const Architecture& model) {
  if (part.module != kAttention) return false;
  const bool has = std::find(part.matrices.begin(), part.matrices.end(), kOutputProjection) != part.matrices.end();
  const std::size_t all = attention_matrices(model).size();
  return has ? part.matrices.size() == 1 : part.matrices.size() + 1 == all;
}

// In which format and where, "nvfp4 (routed experts)"; "" where all formats have prices.
std::string format_without_price(const Architecture& model) {
  const auto has_price = [](Precision type, bool routed) {
    if (type == Precision::bf16 || type == Precision::fp8 || type == Precision::nvfp4) return true;
    return routed && (type == Precision::mxfp4 || type == Precision::int4);
  };
  for (const StoredWeights& part : model.stored) {
    const bool mixed = part.share < 1 && part.type != Precision::bf16 && !divides_at_output(part, model);
    if (!part.mtp && (mixed || !has_price(part.type, is_routed(part)))) {
      return fmt::format("{} ({})", name_of(part.type), part.module);
    }
  }
  if (!has_price(model.weights, false)) return fmt::format("{} ({})", name_of(model.weights), kAttention);
  if (model.n_routed_experts == 0 || has_price(model.expert_weights, true)) return "";
  return fmt::format("{} ({})", name_of(model.expert_weights), kRoutedExperts);
}

}  // namespace

CheckpointFormat read_checkpoint_format(const ModelFields& fields) {
  const std::optional<Spec> own = fields.map_or_none("quantization_config");
  if (own && !fields.is_config_json()) own->expect({"quant_method", "weight_block_size"});
  const CheckpointFormat by_own = own ? described(*own, format_by_method(*own)) : CheckpointFormat{};
  const std::optional<Spec> file = modelopt_file(fields);
  if (!file) return by_own;
  const Format format = format_named(*file, "quant_algo");
  if (own && !(format == Format{by_own.type, by_own.bytes})) {
    throw file->error("quant_algo", "is another format than quantization_config's in config.json");
  }
  return described(*file, format);
}

void store_as(const CheckpointFormat& format, Architecture& model) {
  model.kv_cache = format.kv_cache;
  model.stored.clear();
  Share others, experts;  // of the model without its MTP modules
  for (const Kind& kind : kinds_of(model)) {
    const auto [kept, all, kept_matrices, other_matrices] = share_of(format, kind);
    if (all == 0) continue;
    if (kept > 0) model.stored.push_back({kind.module, kind.mtp, Precision::bf16, 2, kept / all, kept_matrices});
    if (kept < all) {
      model.stored.push_back({kind.module, kind.mtp, format.type, format.bytes, 1 - kept / all, other_matrices});
    }
    if (kind.mtp) continue;
    Share& sum = kind.module == std::string(kRoutedExperts) ? experts : others;
    sum.kept += kept;
    sum.all += all;
  }
  const auto usual_of = [&](const Share& sum) { return 2 * sum.kept >= sum.all ? Precision::bf16 : format.type; };
  model.weights = usual_of(others);
  model.expert_weights = usual_of(experts);
  std::erase_if(model.stored, [&](const StoredWeights& part) {
    const Precision usual = is_routed(part) ? model.expert_weights : model.weights;
    return part.share == 1 && part.type == usual && part.bytes == bytes_per_weight(usual);
  });
}

void expect_prices(const Spec& spec, const std::string& key, const Architecture& model) {
  const std::string format = format_without_price(model);
  if (format.empty()) return;
  throw spec.error(key,
                   fmt::format("is stored in {}, which has no prices yet; `moeline model` tells its size", format));
}

}  // namespace moeline
