// moeline model: how large a model is, from its configuration alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "architecture/block_modules.hpp"
#include "architecture/parameters.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/json.hpp"

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

void add_modules(Json& json, const Architecture& model, int seq_len) {
  json.open_list("modules");
  for (const Module& module : modules(model)) {
    json.open().add("module", module.name).add("count", module.count, 0).add("parameters", module.parameters(), 0);
    json.add("active_parameters", module.active_parameters(), 0);
    const double flops = flops_of(module, model, seq_len);
    json.add("macs", flops / 2, 1).add("flops", flops, 1);
    json.add("weight_bytes", module.count * module.bytes(), 0).add("weights", formats_of(module)).close();
  }
  json.close_list();
}

std::string to_json(const Architecture& model, int seq_len) {
  Json json;
  json.open().add("schema_version", 1).add("model", model.name);
  if (!model.model_type.empty()) json.add("model_type", model.model_type);
  json.add("attention", attention_of(model));
  json.add("num_hidden_layers", model.num_hidden_layers).add("moe_layers", model.moe_layers());
  json.open_list("attention_layers");
  for (const auto& [name, layers] : attention_layers(model)) {
    json.open().add("attention", name).add("layers", layers).close();
  }
  json.close_list();
  json.add("parameters", parameters(model), 0).add("active_parameters", active_parameters(model), 0);
  if (const auto mtp = mtp_modules(model); !mtp.empty()) {
    json.add("mtp_parameters", parameters_of(mtp), 0).add("mtp_weight_bytes", bytes_of(mtp), 0);
  }
  const double bytes = bytes_of(modules(model));
  json.add("weight_bytes", bytes, 0).add("weights_gb", bytes / 1e9, 6);
  json.add("kv_bytes_per_token", kv_bytes_per_token(model), 0).add("kv_cache", name_of(model.kv_cache));
  if (const double state = state_bytes(model); state > 0) json.add("state_bytes_per_sequence", state, 0);
  json.add("seq_len", seq_len).add("kv_bytes_per_sequence", kv_bytes(model, seq_len), 0);
  json.add("train_flops_per_token", train_flops_per_token(model, seq_len), 0);
  if (!model.towers.empty()) json.add("left_out", model.towers);
  add_modules(json, model, seq_len);
  json.close();
  return json.text();
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

void add_model(CLI::App& app, Console& console) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app.add_subcommand("model", "parameters, KV cache and FLOPs of a model");
  command->add_option("model", options->model, "name in model/zoo, YAML file, config.json or its folder")->required();
  command->add_option("--format", options->format, "of the result on stdout")->transform(one_of({"table", "json"}));
  command->add_option("--seq-len", options->seq_len, "tokens per sequence (4096)")->check(CLI::Range(1, 1 << 24));
  command->footer(kModelDefinitions);
  command->callback([options, &console] {
    const Architecture model = load_architecture(options->model);
    const bool json = options->format == "json";
    console.print(json ? to_json(model, options->seq_len) : to_table(model, options->seq_len));
  });
}

}  // namespace moeline
