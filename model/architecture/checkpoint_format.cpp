#include "architecture/checkpoint_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "architecture/blocks.hpp"
#include "architecture/config_keys.hpp"
#include "architecture/matrices.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

constexpr int kLargestGroup = 1 << 22;

using Format = StorageFormat;

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
  constexpr int kNvfp4Group = 16;
  const bool four_bits = algorithm.find("FP4") != std::string::npos || algorithm == "MIXED_PRECISION";
  const int group = spec.stands("group_size") ? spec.integer("group_size", 1, kLargestGroup)
                    : four_bits               ? kNvfp4Group
                                              : 128;
  if (four_bits && group != kNvfp4Group) throw spec.error("group_size", "must be 16");
  if (algorithm == "FP8") return standard(Precision::fp8_static);
  if (algorithm == "FP8_PER_CHANNEL_PER_TOKEN") return standard(Precision::fp8_tensor);
  if (algorithm == "FP8_PB_WO") return standard(Precision::fp8);
  if (algorithm == "NVFP4") return standard(Precision::nvfp4);
  if (algorithm == "W4A16_NVFP4") return int4(8, kNvfp4Group);
  if (algorithm == "W4A16_AWQ") return int4(16, group);
  if (algorithm == "MIXED_PRECISION") return {};  // the modules are listed
  refuse(spec, key, fmt::format("weights of {}", algorithm.substr(0, 40)));
}

// Of activations: the checkpoint has them.
bool has_static_scales(const Spec& group) {
  if (!group.stands("input_activations")) return false;
  const Spec activations = group.map("input_activations");
  return activations.stands("dynamic") && activations.words("dynamic") == std::vector<std::string>{"false"};
}

// A group of compressed-tensors, whose scheme ModelOpt shares. Without a format of activations it is of weights alone.
Format format_of_group(const Spec& group) {
  const Spec weights = group.map("weights");
  const int bits = weights.integer("num_bits", 1, 64);
  const std::string type = weights.text_or("type", "");
  const int size = weights.stands("group_size") ? weights.integer("group_size", 1, kLargestGroup) : kLargestGroup;
  const bool alone = group.has("input_activations") && !group.stands("input_activations");
  if (bits == 8 && type == "float") {
    if (weights.text_or("strategy", "") == "block") return standard(Precision::fp8);
    return standard(has_static_scales(group) ? Precision::fp8_static : Precision::fp8_tensor);
  }
  if (bits == 4 && type == "float" && size == 16) return alone ? int4(8, size) : standard(Precision::nvfp4);
  if (bits == 4 && type == "float" && size == 32) return standard(Precision::mxfp4);
  if (bits == 4 && type == "int") return int4(16, size);
  refuse(weights, "num_bits", fmt::format("weights of {} bits, type {}", bits, type.substr(0, 40)));
}

bool is_class_of_layers(const std::string& target) { return target == "Linear" || target == "MoE"; }

// Groups of all linear layers, and such of listed ones.
void read_groups(const Spec& quantization, CheckpointFormat& result) {
  const Spec groups = quantization.map("config_groups");
  const std::vector<std::string> names = groups.keys();
  if (names.empty()) throw quantization.error("config_groups", "is empty");
  for (const std::string& name : names) {
    const Spec group = groups.map(name);
    const Format format = format_of_group(group);
    const std::vector<std::string> targets =
        group.stands("targets") ? group.texts("targets") : std::vector<std::string>{};
    const bool all = targets.empty() || std::any_of(targets.begin(), targets.end(), is_class_of_layers);
    if (all) result.usual = format;
    for (const std::string& target : targets) {
      if (target.starts_with("re:")) refuse(group, "targets", "formats of layers by regular expressions");
      if (!is_class_of_layers(target)) result.listed[from_layers(target)] = format;
    }
  }
}

void read_listed(const Spec& quantization, CheckpointFormat& result) {
  const Spec layers = quantization.map("quantized_layers");
  for (const std::string& path : layers.keys()) {
    result.listed[from_layers(path)] = format_named(layers.map(path), "quant_algo");
  }
}

// Without blocks there is one scale per matrix.
Format fp8_by_blocks(const Spec& quantization) {
  if (!quantization.stands("weight_block_size")) {
    const bool given = quantization.text_or("activation_scheme", "dynamic") == "static";
    return standard(given ? Precision::fp8_static : Precision::fp8_tensor);
  }
  if (quantization.integers("weight_block_size", 1, kLargestGroup) != std::vector<int>{128, 128}) {
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
  const int group = quantization.integer("group_size", -1, kLargestGroup);
  return int4(16 + 4, group > 0 ? group : kLargestGroup);
}

Format format_by_method(const Spec& quantization) {
  const std::string method = quantization.text_or("quant_method", "");
  if (method.empty()) throw quantization.error("quant_method", "is not there to say which");
  if (method == "fp8") return fp8_by_blocks(quantization);
  if (method == "fbgemm_fp8") return standard(Precision::fp8_tensor);
  if (method == "mxfp4") return standard(Precision::mxfp4);
  if (method == "awq" || method == "gptq") return int4_with_zeros(quantization);
  refuse(quantization, "quant_method", fmt::format("weights of {}", method.substr(0, 40)));
}

// ModelOpt may write an algorithm, groups and a list of modules, of which the latter say more. A list beside the blocks
// of FP8 is of what was stored anew.
void read_formats(const Spec& quantization, CheckpointFormat& result) {
  const bool named = quantization.stands("quant_algo");
  const std::string method = quantization.text_or("quant_method", "");
  const bool anew = method == "fp8" && quantization.stands("quantized_layers");
  const Format by_name = format_named(quantization, "quant_algo");
  if (named && !anew) result.usual = by_name;
  const bool grouped = method == "compressed-tensors" || method == "modelopt" || (named && !anew);
  if (quantization.stands("quantized_layers")) {
    read_listed(quantization, result);
  } else if (grouped && (!named || quantization.has("config_groups"))) {
    read_groups(quantization, result);
  }
  if (anew || (!named && !grouped)) result.usual = format_by_method(quantization);
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

CheckpointFormat described(const Spec& quantization) {
  CheckpointFormat result;
  read_formats(quantization, result);
  const bool anew = quantization.text_or("quant_method", "") == "fp8" && !result.listed.empty();
  if (!anew) result.kept = kept_modules(quantization);  // else these stay in FP8
  result.kv_cache = kv_cache_of(quantization);
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

// A matrix has the names of its families, each also as an MTP module's.
std::vector<std::string> paths_of(const Architecture& model, int number, bool mtp, const Matrix& matrix) {
  std::vector<std::string> paths;
  for (const std::string& name : matrix.names) {
    paths.push_back(fmt::format("layers.{}.{}", number, name));
    if (mtp) paths.push_back(fmt::format("mtp.layers.{}.{}", number - model.num_hidden_layers, name));
  }
  return paths;
}

// Of the module itself or of one around it.
const Format* listed_format(const CheckpointFormat& format, const std::string& path) {
  for (std::size_t end = path.size(); end != std::string::npos; end = path.rfind('.', end - 1)) {
    const auto found = format.listed.find(path.substr(0, end));
    if (found != format.listed.end()) return &found->second;
    if (end == 0) break;
  }
  return nullptr;
}

Format format_of(const CheckpointFormat& format, const std::vector<std::string>& paths, bool routed) {
  for (const std::string& path : paths) {
    if (const Format* listed = listed_format(format, path)) return *listed;
  }
  const auto kept = [&](const std::string& path) { return format.kept.match(path); };
  Format usual = routed ? format.experts.value_or(format.usual) : format.usual;
  // Layers of experts scale their inputs themselves, wherever the scales come from.
  if (routed && usual.type == Precision::fp8_static) usual.type = Precision::fp8_tensor;
  const bool stays = format.experts_alone ? !routed : std::any_of(paths.begin(), paths.end(), kept);
  return stays ? Format{} : usual;
}

// Parameters of each kind of module, of the model or its MTP modules, by format.
class Shares {
 public:
  void add(const std::string& module, bool mtp, const Format& format, double parameters) {
    sums_[{mtp, module}][format] += parameters;
  }

  [[nodiscard]] std::vector<StoredWeights> stored() const {
    std::vector<StoredWeights> parts;
    for (const auto& [key, formats] : sums_) {
      double all = 0;
      for (const auto& [format, sum] : formats) all += sum;
      for (const auto& [format, sum] : formats) {
        parts.push_back({key.second, key.first, format.type, format.bytes, sum / all});
      }
    }
    return parts;
  }

  /// The format of most parameters of routed experts, or of all else, MTP modules apart.
  [[nodiscard]] Precision most(bool routed) const {
    std::map<Precision, double> sums;
    for (const auto& [key, formats] : sums_) {
      if (key.first || (key.second == kRoutedExperts) != routed) continue;
      for (const auto& [format, sum] : formats) sums[format.type] += sum;
    }
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto most = std::max_element(sums.begin(), sums.end(), less);
    return most == sums.end() ? Precision::bf16 : most->first;
  }

 private:
  std::map<std::pair<bool, std::string>, std::map<Format, double>> sums_;
};

// Layer by layer, what the matrices of each module are stored in.
class Storing {
 public:
  Storing(const CheckpointFormat& format, const Architecture& model)
      : format_(format), model_(model), experts_(expert_matrices(model)), shared_(shared_matrices(model)) {}

  void store(Layer& layer, const LayerNumbers& numbers, bool mtp) {
    const Architecture& a = model_;
    const LayerAttention& attention = layer.attention;
    LayerFormats& formats = layer.formats;
    mtp_ = mtp;
    if (attention.kind != AttentionKind::none) {
      const std::string module = attention_module(a, attention);
      formats.attention_in = store(module, 1, attention_matrices(a, attention), MatrixUse::in, numbers.attention);
      formats.attention_out = store("", 0, attention_matrices(a, attention), MatrixUse::out, numbers.attention);
      (void)store(kIndexer, 1, indexer_matrices(a, attention), MatrixUse::in, numbers.attention);
    }
    if (layer.routed) {
      formats.experts = store(kRoutedExperts, a.n_routed_experts, experts_, MatrixUse::in, numbers.ffn);
      formats.shared = store(kSharedExperts, a.n_shared_experts, shared_, MatrixUse::in, numbers.ffn);
    } else if (layer.dense_width > 0) {
      const std::string module = dense_module(a, layer.dense_width);
      formats.dense = store(module, 1, dense_matrices(a, layer.dense_width), MatrixUse::in, numbers.ffn);
    }
  }

  [[nodiscard]] const Shares& shares() const { return shares_; }

 private:
  // Counts them, and tells the format of the first one of this use.
  Precision store(const std::string& module, double count, const std::vector<Matrix>& matrices, MatrixUse use,
                  int number) {
    std::optional<Precision> first;
    for (const Matrix& matrix : matrices) {
      const Format format = matrix.use == MatrixUse::side  // too small to be worth it, in every checkpoint
                                ? Format{}
                                : format_of(format_, paths_of(model_, number, mtp_, matrix), module == kRoutedExperts);
      if (count > 0) shares_.add(module, mtp_, format, count * matrix.parameters);
      if (!first && matrix.use == use) first = format.type;
    }
    return first.value_or(Precision::bf16);
  }

  const CheckpointFormat& format_;
  const Architecture& model_;
  const std::vector<Matrix> experts_, shared_;  // of every layer that routes
  Shares shares_;
  bool mtp_ = false;
};

// What `modules` says alone: all in one format, with the usual scales.
bool says_nothing_new(const StoredWeights& part, const Architecture& model) {
  const Precision usual = part.module == kRoutedExperts ? model.expert_weights : model.weights;
  return part.share == 1 && part.type == usual && part.bytes == bytes_per_weight(usual);
}

template <class Change>
void change_formats(Architecture& model, const Change& change) {
  for (Layer& layer : model.layers) change(layer.formats);
  change(model.mtp_layer.formats);
}

}  // namespace

CheckpointFormat read_checkpoint_format(const ModelFields& fields) {
  const std::optional<Spec> own = fields.map_or_none("quantization_config");
  if (own && !fields.is_config_json()) own->expect({"quant_method", "weight_block_size"});
  CheckpointFormat result = own ? described(*own) : CheckpointFormat{};
  const std::optional<Spec> file = modelopt_file(fields);
  if (file && !result.listed.empty()) {
    if (result.kv_cache == Precision::bf16) result.kv_cache = kv_cache_of(*file);
  } else if (file) {
    CheckpointFormat by_file = described(*file);
    if (own && by_file.usual != result.usual) {
      throw file->error("quant_algo", "is another format than quantization_config's in config.json");
    }
    result = std::move(by_file);
  }
  if (const std::string experts = fields.text_or("expert_dtype", "fp8"); experts == "fp4") {
    result.experts = standard(Precision::mxfp4);
  } else if (experts != "fp8") {
    throw fields.error_at("expert_dtype", not_modelled("experts of " + experts.substr(0, 40), "expert_dtype"));
  }
  return result;
}

void store_as(const CheckpointFormat& format, Architecture& model) {
  model.kv_cache = format.kv_cache;
  Storing storing(format, model);
  for (int i = 0; i < model.num_hidden_layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const LayerNumbers numbers = model.numbers.empty() ? LayerNumbers{i, i} : model.numbers[at];
    storing.store(model.layers[at], numbers, false);
  }
  for (int i = 0; i < model.num_nextn_predict_layers; ++i) {
    const int number = model.num_hidden_layers + i;
    storing.store(model.mtp_layer, {number, number}, true);
  }
  model.weights = storing.shares().most(false);
  model.expert_weights = storing.shares().most(true);
  model.stored = storing.shares().stored();
  std::erase_if(model.stored, [&](const StoredWeights& part) { return says_nothing_new(part, model); });
}

void store_linear_as(Precision format, Architecture& model) {
  model.weights = format;
  std::erase_if(model.stored, [](const StoredWeights& part) { return part.module != kRoutedExperts && !part.mtp; });
  change_formats(model, [&](LayerFormats& formats) {
    formats.attention_in = formats.attention_out = formats.dense = formats.shared = format;
  });
}

void store_experts_as(Precision format, Architecture& model) {
  model.expert_weights = format;
  std::erase_if(model.stored, [](const StoredWeights& part) { return part.module == kRoutedExperts && !part.mtp; });
  change_formats(model, [&](LayerFormats& formats) { formats.experts = format; });
}

}  // namespace moeline
