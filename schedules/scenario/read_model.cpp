#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "architecture/checkpoint_format.hpp"
#include "schedules/scenario/keys.hpp"

namespace moeline {
namespace {

// What a word asks for; nothing: the checkpoint's.
std::optional<Precision> asked_format(const std::string& word) {
  return word == "checkpoint" ? std::nullopt : std::optional(precision_named(word));
}

void expect_tensor_cores(const Spec& spec, const char* key, Precision format, const MachineFacts& machine) {
  const bool fp8 = number_bytes(multiplied_in(format)) == 1;
  if (!fp8 || machine.fp8_tflops > 0) return;
  throw spec.error(key,
                   fmt::format("is {}, and the machine has no FP8 tensor cores (fp8_tflops is 0)", name_of(format)));
}

}  // namespace

void read_precision(const Spec& spec, Setup& setup) {
  spec.expect(keys::precision().names());
  Architecture& model = setup.model;
  PrecisionWords& words = setup.scenario.precision;
  keys::precision().read_all(spec, words);
  const MachineFacts& machine = setup.machine.facts;
  if (const auto linear = asked_format(words.linear)) {
    expect_tensor_cores(spec, "linear", *linear, machine);
    store_linear_as(*linear, model);
  }
  if (const auto experts = asked_format(words.experts)) {
    expect_tensor_cores(spec, "experts", *experts, machine);
    store_experts_as(*experts, model);
  }
  if (const auto cache = asked_format(words.kv_cache)) model.kv_cache = *cache;
  const bool has_choice = model.expert_weights == Precision::mxfp4 && machine.fp4_tflops > 0;
  if (words.expert_inputs != "stack" && !has_choice) {
    throw spec.error("expert_inputs", fmt::format("is of experts in mxfp4 on FP4 tensor cores: these are {} on {}",
                                                  name_of(model.expert_weights), setup.machine.name));
  }
}

namespace {

constexpr const char* kOperators = "operators";

// DeepSeek's list of kernels is of MLA with a latent of queries, and shared experts.
bool is_like_v3(const Architecture& model) {
  const auto plain = [](const Layer& layer) {
    return layer.attention.kind == AttentionKind::mla && layer.attention.selection.heads == 0 && !layer.attention.gated;
  };
  return model.is_mla() && model.q_lora_rank > 0 && model.n_shared_experts > 0 && model.moe_latent_size == 0 &&
         std::all_of(model.layers.begin(), model.layers.end(), plain);
}

// What Megatron's list has no kernels for; null: nothing.
const char* unknown_to_megatron(const Layer& layer) {
  const LayerAttention& a = layer.attention;
  if (a.kind == AttentionKind::none || !layer.has_ffn()) return "layers of attention or a feed-forward network alone";
  if (has_state(a.kind)) return "linear attention";
  if (a.kind == AttentionKind::compressed) return "compressed attention";
  if (a.selection.heads > 0) return "attention to selected keys";
  if (a.chunk > 0) return "attention within chunks";
  return a.gated ? "gated attention" : nullptr;
}

const char* unknown_to_megatron(const Architecture& model) {
  if (model.hc_mult > 1 || model.attn_res_block_size > 0) return "other residual connections";
  if (model.moe_latent_size > 0) return "experts of a smaller hidden size";
  if (model.zero_expert_num > 0) return "experts that compute nothing";
  if (model.output_norms) return "norms behind attention and feed-forward networks";
  for (const Layer& layer : model.layers) {
    if (const char* what = unknown_to_megatron(layer)) return what;
  }
  return nullptr;
}

bool in_fp8(const Architecture& model) {
  return model.weights == Precision::fp8 && model.expert_weights == Precision::fp8;
}

TrainingOperators usual_operators(const Architecture& model) {
  return is_like_v3(model) && in_fp8(model) ? TrainingOperators::deepseek : TrainingOperators::megatron;
}

void check_deepseek(const Spec& training, const Architecture& model) {
  if (!is_like_v3(model)) {
    throw training.error(kOperators,
                         fmt::format("deepseek train MLA with shared experts, as in deepseek-v3, and '{}' is "
                                     "another model; there is: megatron",
                                     model.name));
  }
  if (!in_fp8(model)) {
    throw training.error(kOperators,
                         "deepseek train in FP8 alone: precision={linear: fp8, experts: fp8}; there is: megatron");
  }
}

void check_format(const Spec& scenario, const Architecture& model, Precision weights) {
  if (weights == Precision::bf16 || weights == Precision::fp8) return;
  throw scenario.error("model",
                       fmt::format("'{}' has weights in {}, and training is modelled in BF16 and block-scaled FP8: "
                                   "precision={{linear: bf16, experts: bf16}} trains it so",
                                   model.name, name_of(weights)));
}

void check_megatron(const Spec& scenario, const Architecture& model) {
  if (const char* what = unknown_to_megatron(model)) {
    throw scenario.error("model", fmt::format("'{}': training is not modelled for {}", model.name, what));
  }
  check_format(scenario, model, model.weights);
  if (model.n_routed_experts > 0) check_format(scenario, model, model.expert_weights);
}

}  // namespace

void read_training_operators(const Spec& scenario, Setup& setup) {
  Architecture& model = setup.model;
  const Spec training = scenario.map_or_empty("training");
  TrainingOperators& operators = setup.scenario.training.operators;
  const bool megatron = same_but_for_case(setup.scenario.kernels, name_of(Stack::megatron));
  operators = read_choice(training, kOperators, megatron ? TrainingOperators::megatron : usual_operators(model));
  if (operators == TrainingOperators::deepseek) {
    check_deepseek(training, model);
  } else {
    check_megatron(scenario, model);
  }
  // What a checkpoint stores otherwise than most of its layers is trained as they are.
  store_linear_as(model.weights, model);
  if (model.n_routed_experts > 0) store_experts_as(model.expert_weights, model);
  model.stored.clear();
}

}  // namespace moeline
