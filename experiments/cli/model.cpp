// moeline model: how large a model is, from its configuration alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "architecture/blocks.hpp"
#include "architecture/parameters.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
namespace {

struct ModelOptions {
  std::string model;
  std::string format = "table";
  int seq_len = 4096;
};

// "fp8", or of a module stored in several formats "bf16+nvfp4".
std::string formats_of(const Module& module) {
  std::set<std::string> names;
  for (const StoredWeights& part : module.stored) names.insert(name_of(part.type));
  return names.empty() ? name_of(module.type) : fmt::format("{}", fmt::join(names, "+"));
}

// Of the layer with most keys: "MLA"; what the others have is listed.
std::string attention_of(const Architecture& model) {
  if (model.is_mla()) return "MLA";
  LayerAttention usual = model.layers.front().attention;
  for (const Layer& layer : model.layers) {
    if (usual.kind == AttentionKind::none || has_state(usual.kind)) usual = layer.attention;
  }
  usual = {.kind = usual.kind, .heads = usual.heads, .kv_heads = usual.kv_heads};
  return describe(usual);
}

// How many layers have which attention, in the order of their first ones.
std::vector<std::pair<std::string, int>> attention_layers(const Architecture& model) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const Layer& layer : model.layers) {
    const std::string name = describe(layer.attention);
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == name; });
    known == kinds.end() ? void(kinds.emplace_back(name, 1)) : void(++known->second);
  }
  return kinds;
}

double bytes_of(const std::vector<Module>& modules) {
  double sum = 0;
  for (const Module& module : modules) sum += module.count * module.bytes();
  return sum;
}

double parameters_of(const std::vector<Module>& modules) {
  double sum = 0;
  for (const Module& module : modules) sum += module.parameters();
  return sum;
}

// Of a forward pass, per token. Scores of an indexer count with the attention that they choose keys for.
double flops_of(const Module& module, const Architecture& model, int seq_len) {
  double core = 0;
  for (const Layer& layer : model.layers) {
    const bool has = module.attention.kind != AttentionKind::none && layer.attention.kind != AttentionKind::none &&
                     attention_module(model, layer.attention) == module.name;
    if (has) core += attention_core_flops(layer.attention, seq_len);
  }
  return module.forward_flops() + core;
}

struct ListedModule {
  Module module;
  double flops = 0;  // of a forward pass, per token
};

std::vector<ListedModule> listed_modules(const Architecture& model, int seq_len) {
  std::vector<ListedModule> listed;
  for (const Module& module : modules(model)) listed.push_back({module, flops_of(module, model, seq_len)});
  return listed;
}

As number(int decimals = 0) { return {.decimals = decimals}; }

Fields<ListedModule> module_fields() {
  return Fields<ListedModule>()
      .add("module", "name", [](auto& m) { return m.module.name; })
      .add(
          "count", "of them", [](auto& m) { return m.module.count; }, number())
      .add(
          "parameters", "of all of them", [](auto& m) { return m.module.parameters(); }, number())
      .add(
          "active_parameters", "parameters that one token passes through",
          [](auto& m) { return m.module.active_parameters(); }, number())
      .add(
          "macs", "multiply-adds of one token's forward pass", [](auto& m) { return m.flops / 2; }, number(1))
      .add("flops", "two for each", &ListedModule::flops, number(1))
      .add(
          "weight_bytes", "of all of them", [](auto& m) { return m.module.count * m.module.bytes(); }, number())
      .add("weights", "format", [](auto& m) { return formats_of(m.module); });
}

using AttentionLayers = std::pair<std::string, int>;

Fields<Architecture> model_fields(int seq_len) {
  const auto attention = Fields<AttentionLayers>()
                             .add("attention", "kind", &AttentionLayers::first)
                             .add("layers", "how many", &AttentionLayers::second);
  const auto of_mtp = [](auto sum) {
    return [=](const Architecture& model) {
      const std::vector<Module> mtp = mtp_modules(model);
      return only_if(!mtp.empty(), sum(mtp));
    };
  };
  return output_fields<Architecture>()
      .add("model", "name", &Architecture::name)
      .add("model_type", "of its config.json", [](auto& m) { return if_any(m.model_type); })
      .add("attention", "of the layer with most keys", attention_of)
      .add("num_hidden_layers", "decoder layers", &Architecture::num_hidden_layers)
      .add("moe_layers", "of them with experts", &Architecture::moe_layers)
      .list("attention_layers", "layers by their attention", attention_layers, attention)
      .add(
          "parameters", "parameters, MTP modules left out", [](auto& m) { return parameters(m); }, number())
      .add(
          "active_parameters", "parameters that one token passes through", [](auto& m) { return active_parameters(m); },
          number())
      .add("mtp_parameters", "of MTP modules", of_mtp(parameters_of), number())
      .add("mtp_weight_bytes", "of MTP modules", of_mtp(bytes_of), number())
      .add(
          "weight_bytes", "bytes as the checkpoint stores them", [](auto& m) { return bytes_of(modules(m)); }, number())
      .add(
          "weights_gb", "the same in 10^9 bytes", [](auto& m) { return bytes_of(modules(m)) / 1e9; }, number(6))
      .add(
          "kv_bytes_per_token", "at BF16; layers with a window count nothing",
          [](auto& m) { return kv_bytes_per_token(m); }, number())
      .add("kv_cache", "format that the checkpoint asks for", [](auto& m) { return name_of(m.kv_cache); })
      .add(
          "state_bytes_per_sequence", "of linear attention, however long it is",
          [](auto& m) { return only_if(state_bytes(m) > 0, state_bytes(m)); }, number())
      .add("seq_len", "tokens of a sequence, --seq-len", [=](auto&) { return seq_len; })
      .add(
          "kv_bytes_per_sequence", "at BF16", [=](auto& m) { return kv_bytes(m, seq_len); }, number())
      .add(
          "train_flops_per_token", "3 x forward, causal attention",
          [=](auto& m) { return train_flops_per_token(m, seq_len); }, number())
      .add("left_out", "towers that are not counted", [](auto& m) { return only_if(!m.towers.empty(), m.towers); })
      .list(
          "modules", "by module", [=](auto& m) { return listed_modules(m, seq_len); }, module_fields());
}

std::string row(const Module& module, double flops) {
  const double total = module.parameters();
  return fmt::format("{:<20} {:>7.0f} {:>14.3f} {:>14.3f} {:>15.3f} {:>12.3f} {:>8}\n", module.name, module.count,
                     total / 1e9, module.active_parameters() / 1e9, flops / 1e9, module.count * module.bytes() / 1e9,
                     formats_of(module));
}

// "MLA"; of several kinds "12 GQA, gated; 36 gated delta net".
std::string attention_summary(const Architecture& model) {
  const auto kinds = attention_layers(model);
  if (kinds.size() == 1) return kinds.front().first;
  std::vector<std::string> parts;
  for (const auto& [name, layers] : kinds) parts.push_back(fmt::format("{} x {}", layers, name));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string to_table(const Architecture& model, int seq_len) {
  std::string text = fmt::format("{}: {} layers, {} of them MoE, {}\n\n", model.name, model.num_hidden_layers,
                                 model.moe_layers(), attention_summary(model));
  text += fmt::format("{:<20} {:>7} {:>14} {:>14} {:>15} {:>12} {:>8}\n", "module", "count", "parameters, B",
                      "active, B", "forward, GFLOP", "weights, GB", "type");
  for (const Module& module : modules(model)) text += row(module, flops_of(module, model, seq_len));
  text += fmt::format("{:<20} {:>7} {:>14.3f} {:>14.3f} {:>15.3f} {:>12.3f}\n", "total", "", parameters(model) / 1e9,
                      active_parameters(model) / 1e9, train_flops_per_token(model, seq_len) / 3e9,
                      bytes_of(modules(model)) / 1e9);
  if (const auto mtp = mtp_modules(model); !mtp.empty()) {
    text += fmt::format("{:<20} {:>7} {:>14.3f} {:>14} {:>15} {:>12.3f}\n", "MTP, apart",
                        model.num_nextn_predict_layers, parameters_of(mtp) / 1e9, "", "", bytes_of(mtp) / 1e9);
  }
  text += fmt::format("\nKV cache, BF16      {:>12.3f} KB per token", kv_bytes_per_token(model) / 1e3);
  text += fmt::format(", {:.3f} MB per sequence of {}\n", kv_bytes(model, seq_len) / 1e6, seq_len);
  if (const double state = state_bytes(model); state > 0) {
    text += fmt::format("of that a state of   {:>11.3f} MB, however long the sequence is\n", state / 1e6);
  }
  if (model.kv_cache != Precision::bf16) {
    text += fmt::format("The checkpoint asks for a KV cache of {}, half of that.\n", name_of(model.kv_cache));
  }
  text += fmt::format("training compute    {:>12.1f} GFLOP per token in sequences of {}\n",
                      train_flops_per_token(model, seq_len) / 1e9, seq_len);
  for (const std::string& tower : model.towers)
    text += fmt::format("{} is not counted: the language model alone.\n", tower);
  return text;
}

constexpr const char* kModelDefinitions = R"(parameters: without MTP modules, which are listed apart; B: 10^9.
active: what one token passes through: its experts of each layer and all else but the embedding, of which it reads a
row.
macs, flops (forward): of one token's forward pass, two FLOPs per multiply-add; attention's with its causal core at
--seq-len. A tied LM head counts with the embedding.
weights: bytes as the checkpoint stores them (quantization_config, hf_quant_config.json), with the scales of FP8 (FP32
per 128x128), MXFP4 (8 bits per 32), NVFP4 (8 bits per 16) and INT4 (16 bits per group).
KV cache per token: at BF16; layers with a sliding window count nothing once it is full, but do per sequence.
train_flops_per_token: 3 x forward; two operations per multiply-add of every matrix, LM head included, and of causal
attention at --seq-len; without embedding, norms, softmax, recomputation and MTP.
A config.json is one of Hugging Face, unchanged, or the folder that holds it. Families that are not known, and keys that
ask for what is not modelled, are refused by name. Of a model with a vision tower the language model is counted.)";

}  // namespace

std::string model_schema() {
  return output_schema("model", "`moeline model MODEL --format json`: how large it is", model_fields(1).described());
}

Command make_model(Console& console) {
  auto options = std::make_shared<ModelOptions>();
  return {.name = "model",
          .about = "parameters, KV cache and FLOPs of a model",
          .options = {required({"model", &options->model, "name in model/zoo, YAML file, config.json or its folder"}),
                      format_option(options->format, {"table", "json"}, "of the result on stdout"),
                      {"--seq-len", &options->seq_len, "tokens per sequence (4096)", Between{1, 1 << 24}}},
          .footer = kModelDefinitions,
          .run = [options, &console] {
            const Architecture model = load_architecture(options->model);
            const bool json = options->format == "json";
            console.print(json ? model_fields(options->seq_len).json(model) : to_table(model, options->seq_len));
          }};
}

}  // namespace moeline
