#include "moe/checkpoint_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

#include "base/file.hpp"
#include "moe/matrices.hpp"
#include "moe/parameters.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

constexpr int kWidest = 1 << 22;

struct Format {
  WeightType type = WeightType::bf16;
  double bytes = 2;
  bool operator==(const Format&) const = default;
};

Format standard(WeightType type) { return {type, bytes_per_weight(type)}; }

// `beside`: bits of a scale, and of a zero point where there is one, per group of weights.
Format int4(double beside, int group) { return {WeightType::int4, (4 + beside / group) / 8}; }

[[noreturn]] void refuse(const Spec& spec, const std::string& key, const std::string& what) {
  throw spec.error_at(key, fmt::format("not modelled: {} ({})", what, key));
}

// ModelOpt's names of what it does to linear layers.
Format format_named(const Spec& spec, const std::string& key) {
  if (!spec.has(key) || spec.is_null(key)) return {};
  const std::string algorithm = spec.text(key);
  constexpr int kAwqGroup = 128;
  if (algorithm == "FP8") return standard(WeightType::fp8);
  if (algorithm == "NVFP4") return standard(WeightType::nvfp4);
  if (algorithm == "W4A16_AWQ") return int4(16, kAwqGroup);
  if (algorithm == "MIXED_PRECISION") refuse(spec, key, "formats that differ from layer to layer");
  refuse(spec, key, fmt::format("weights of {}", algorithm.substr(0, 40)));
}

// A group of compressed-tensors, whose scheme ModelOpt shares.
Format format_of_group(const Spec& groups, const std::string& name) {
  const Spec weights = groups.map(name).map("weights");
  const int bits = weights.integer("num_bits", 1, 64);
  const std::string type = weights.text_or("type", "");
  const bool grouped = weights.has("group_size") && !weights.is_null("group_size");
  const int group = grouped ? weights.integer("group_size", 1, kWidest) : kWidest;
  if (bits == 8 && type == "float") return standard(WeightType::fp8);
  if (bits == 4 && type == "float" && group == 16) return standard(WeightType::nvfp4);
  if (bits == 4 && type == "float" && group == 32) return standard(WeightType::mxfp4);
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
  const bool blocks = quantization.has("weight_block_size") && !quantization.is_null("weight_block_size");
  if (blocks && quantization.integers("weight_block_size", 1, kWidest) != std::vector<int>{128, 128}) {
    throw quantization.error("weight_block_size", "must be [128, 128]");
  }
  return standard(WeightType::fp8);
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
  if (method == "mxfp4") return standard(WeightType::mxfp4);
  if (method == "awq" || method == "gptq") return int4_with_zeros(quantization);
  if (method == "compressed-tensors" || method == "modelopt") return format_of_groups(quantization);
  refuse(quantization, "quant_method", fmt::format("weights of {}", method.substr(0, 40)));
}

// Each quantizer has its own word for the modules that it leaves alone.
NamePatterns kept_modules(const Spec& quantization) {
  std::vector<std::string> kept;
  for (const char* key : {"modules_to_not_convert", "ignore", "exclude_modules"}) {
    if (!quantization.has(key) || quantization.is_null(key)) continue;
    const std::vector<std::string> more = quantization.texts(key);
    kept.insert(kept.end(), more.begin(), more.end());
  }
  try {
    return NamePatterns(kept);
  } catch (const std::invalid_argument& error) {
    throw quantization.error("ignore", fmt::format("has '{}', which is no regular expression", error.what()));
  }
}

WeightType kv_cache_of(const Spec& quantization) {
  const bool scheme = quantization.has("kv_cache_scheme") && !quantization.is_null("kv_cache_scheme");
  const std::string named = quantization.text_or("kv_cache_quant_algo", "");
  if (named == "NVFP4") refuse(quantization, "kv_cache_quant_algo", "a KV cache of four bits");
  return scheme || named == "FP8" ? WeightType::fp8 : WeightType::bf16;
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
  const int dense = layers - a.moe_layers();
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

// The share of a kind's parameters that stays in BF16.
double kept_share(const CheckpointFormat& format, const Kind& kind) {
  double kept = 0, all = 0;
  for (int layer = kind.first; layer < kind.end; ++layer) {
    for (const Matrix& matrix : kind.matrices) {
      all += matrix.parameters;
      if (is_kept(format, kind, layer, matrix)) kept += matrix.parameters;
    }
  }
  return all > 0 ? kept / all : 0;
}

bool is_routed(const StoredWeights& part) { return part.module == kRoutedExperts; }

// The format that most of the parameters have.
WeightType most(const Architecture& a, bool routed) {
  std::map<WeightType, double> sums;
  for (const Kind& kind : kinds_of(a)) {
    double parameters = 0;
    for (const Matrix& matrix : kind.matrices) parameters += (kind.end - kind.first) * matrix.parameters;
    for (const StoredWeights& part : a.stored) {
      if (part.module == kind.module && part.mtp == kind.mtp && !kind.mtp && is_routed(part) == routed) {
        sums[part.type] += part.share * parameters;
      }
    }
  }
  const auto largest =
      std::max_element(sums.begin(), sums.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return largest == sums.end() ? WeightType::bf16 : largest->first;
}

// In which format and where, "nvfp4 (routed experts)"; "" where all formats have prices.
std::string format_without_price(const Architecture& model) {
  const auto has_price = [](WeightType type, bool routed) {
    return type == WeightType::bf16 || type == WeightType::fp8 || (routed && type == WeightType::mxfp4);
  };
  for (const StoredWeights& part : model.stored) {
    const bool mixed = part.share < 1 && part.type != WeightType::bf16;
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
  for (const Kind& kind : kinds_of(model)) {
    if (kind.first == kind.end) continue;
    const double kept = kept_share(format, kind);
    if (kept > 0) model.stored.push_back({kind.module, kind.mtp, WeightType::bf16, 2, kept});
    if (kept < 1) model.stored.push_back({kind.module, kind.mtp, format.type, format.bytes, 1 - kept});
  }
  model.weights = most(model, false);
  model.expert_weights = most(model, true);
  std::erase_if(model.stored, [&](const StoredWeights& part) {
    const WeightType usual = is_routed(part) ? model.expert_weights : model.weights;
    return part.share == 1 && part.type == usual && part.bytes == bytes_per_weight(usual);
  });
}

void expect_prices(const Spec& spec, const std::string& key, const Architecture& model) {
  const std::string format = format_without_price(model);
  if (format.empty()) return;
  throw spec.error(key,
                   fmt::format("is stored in {}, which has no prices yet; `moeline model` tells its size", format));
}

const char* name_of(WeightType type) {
  switch (type) {
    case WeightType::bf16:
      return "bf16";
    case WeightType::fp8:
      return "fp8";
    case WeightType::mxfp4:
      return "mxfp4";
    case WeightType::nvfp4:
      return "nvfp4";
    case WeightType::int4:
      return "int4";
  }
  return "";
}

}  // namespace moeline
