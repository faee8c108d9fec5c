#include "schedules/scenario/training_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "schedules/scenario/flag_list.hpp"
#include "schedules/scenario/pipeline_parts.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

void check_keys(const Spec& training, const ScheduleKind& schedule) {
  std::vector<std::string> keys = {"operators", "recompute", "activations"};
  if (schedule.pipeline) {
    keys.insert(keys.end(), {"gradients", "moments", "zero", "overlap_gradients", "overlap_parameters", "overlap_sends",
                             "mtp", "delay_weight_gradients", "offload", "offload_optimizer"});
  }
  training.expect(keys);
}

// Megatron's names of them.
const FlagsByName<RecomputedModules>& modules_by_name() {
  static const FlagsByName<RecomputedModules> kModules = {{"core_attn", &RecomputedModules::core_attn},
                                                          {"layernorm", &RecomputedModules::layernorm},
                                                          {"mla_up_proj", &RecomputedModules::mla_up_proj},
                                                          {"mlp", &RecomputedModules::mlp},
                                                          {"moe_act", &RecomputedModules::moe_act}};
  return kModules;
}

const FlagsByName<OffloadedModules>& offloaded_by_name() {
  static const FlagsByName<OffloadedModules> kModules = {
      {"attn_norm", &OffloadedModules::attn_norm}, {"qkv_linear", &OffloadedModules::qkv_linear},
      {"core_attn", &OffloadedModules::core_attn}, {"attn_proj", &OffloadedModules::attn_proj},
      {"mlp_norm", &OffloadedModules::mlp_norm},   {"expert_fc1", &OffloadedModules::expert_fc1},
      {"moe_act", &OffloadedModules::moe_act}};
  return kModules;
}

// Megatron's selective recomputation (--recompute-granularity) is of the core alone.
void read_recompute(const Spec& training, const ScheduleKind& schedule, TrainingChoices& c) {
  c.recompute = habits::recompute(c.operators);
  if (!training.has("recompute")) return;
  if (training.is_list("recompute")) {
    if (!c.by_megatron()) throw training.error("recompute", "lists modules of the operators megatron alone");
    c.recompute = Recompute::selective;
    c.modules = read_flags(training, "recompute", "module", modules_by_name());
    return;
  }
  if (const std::string word = training.text("recompute"); c.by_megatron() && modules_by_name().contains(word)) {
    throw training.error("recompute", fmt::format("lists modules: [{}]", word));
  }
  c.recompute = read_choice(training, "recompute", c.recompute);
  if (c.recompute == Recompute::full && !schedule.pipeline) {
    throw training.error("recompute", "full is for whole pipelines");
  }
  c.modules.core_attn = c.by_megatron() && c.recompute == Recompute::selective;
}

void read_offload(const Spec& training, TrainingChoices& c) {
  if (training.is_list("offload")) {
    c.offload = read_flags(training, "offload", "module", offloaded_by_name());
  } else {
    (void)training.choice("offload", {"none"});
  }
}

// One of two words, the first by default: is it that?
bool is_first(const Spec& training, const char* key, const char* first, const char* second) {
  return !training.has(key) || training.choice(key, {first, second}) == first;
}

// Sends overlap by default where the schedule's authors overlap them.
TrainingChoices read_choices(const Spec& training, const ScheduleKind& schedule, TrainingOperators operators) {
  check_keys(training, schedule);
  TrainingChoices c;
  c.operators = operators;
  read_recompute(training, schedule, c);
  const bool fp8 = is_first(training, "activations", "fp8", "bf16");
  c.narrow_activations = fp8 && c.recompute != Recompute::full && !c.by_megatron();
  c.fp32_gradients = is_first(training, "gradients", "fp32", "bf16");
  c.fp32_moments = habits::keeps_fp32_moments(c.operators) ? is_first(training, "moments", "fp32", "bf16")
                                                           : !is_first(training, "moments", "bf16", "fp32");
  c.zero = training.integer_or("zero", 0, 3, 1);
  c.overlap_sends = schedule.pipeline && schedule.pipeline->overlaps_sends;
  if (training.has("overlap_gradients")) c.overlap_gradients = training.flag("overlap_gradients");
  c.overlap_parameters = c.by_megatron() && schedule.pipeline && c.overlap_gradients && c.zero == 1;
  if (training.has("overlap_parameters")) c.overlap_parameters = training.flag("overlap_parameters");
  if (training.has("delay_weight_gradients")) c.delay_weights = training.flag("delay_weight_gradients");
  if (training.has("overlap_sends")) c.overlap_sends = training.flag("overlap_sends");
  if (training.has("mtp")) c.mtp = training.flag("mtp");
  if (training.has("offload")) read_offload(training, c);
  if (training.has("offload_optimizer")) c.offload_optimizer = training.flag("offload_optimizer");
  return c;
}

// A module that the model does not have; null: all that are listed are there.
const char* absent_module(const RecomputedModules& modules, const Architecture& model) {
  const bool routed = model.n_routed_experts > 0;
  if (modules.mla_up_proj && !model.is_mla()) return "mla_up_proj: there is no MLA";
  if (modules.mlp && model.dense_layers() == 0) return "mlp: no layer has a dense network";
  if (modules.moe_act && !routed) return "moe_act: there are no routed experts";
  if (modules.layernorm && !routed && !model.is_mla()) return "layernorm: norms are parts of their linear layers";
  return nullptr;
}

// Of an offloaded module that keeps nothing to offload; null: all do.
const char* keeps_nothing(const TrainingChoices& c, const Architecture& model) {
  const bool routed = model.n_routed_experts > 0;
  if (c.offload.attn_norm && !model.is_mla()) return "attn_norm: the norm is a part of qkv_linear";
  if (c.offload.mlp_norm && !routed) return "mlp_norm: norms of dense networks are parts of their linear layers";
  if (c.offload.expert_fc1 && !routed) return "expert_fc1: there are no routed experts";
  if (c.offload.moe_act && !routed) return "moe_act: there are no routed experts";
  if (c.offload.core_attn && c.modules.mla_up_proj) return "core_attn: mla_up_proj computes its inputs again";
  return nullptr;
}

void check_offload(const Spec& training, const Setup& setup, const TrainingChoices& c) {
  if (!c.offloads()) return;
  const char* key = c.offload.any() ? "offload" : "offload_optimizer";
  if (!c.by_megatron()) throw training.error(key, "belongs to the operators megatron");
  if (c.offload.any() && c.recompute == Recompute::full) {
    throw training.error(key, "does not apply: with full recomputation only layers' inputs are kept");
  }
  if (const char* module = keeps_nothing(c, setup.model)) {
    throw training.error(key, fmt::format("does not apply to '{}': {}", setup.scenario.model, module));
  }
  if (setup.machine.facts.host_GBps == 0) {
    throw training.error(key,
                         fmt::format("needs a machine with host_GBps, which '{}' does not say", setup.machine.name));
  }
}

// Autograd computes both gradients of a module at once, unless told to delay one; DualPipe's passes have them apart.
void resolve_overlap(const Spec& training, const Scenario& s, TrainingChoices& c) {
  const bool combined = s.overlap == kCombined;
  if (training.has("delay_weight_gradients") && !combined) {
    throw training.error("delay_weight_gradients", "belongs to overlap: combined");
  }
  if (combined && !training.has("delay_weight_gradients")) c.delay_weights = false;
  if (c.splits_gradients() && overlaps_passes(s)) {
    throw training.error("zero", fmt::format("{}, is not modelled where passes overlap; there are: 0, 1", c.zero));
  }
}

// What is asked for and cannot be; defaults give way.
void resolve(const Spec& training, const Setup& setup, TrainingChoices& c) {
  if (const char* absent = absent_module(c.modules, setup.model)) {
    throw training.error("recompute", fmt::format("does not apply to '{}': {}", setup.scenario.model, absent));
  }
  if (c.by_megatron() && training.has("activations")) {
    throw training.error("activations", "belong to the operators deepseek: Megatron keeps them as its GEMMs take them");
  }
  if (c.recompute == Recompute::full && training.has("activations")) {
    throw training.error("activations", "do not apply: with full recomputation only layers' inputs are kept, in BF16");
  }
  if (c.splits_gradients() && !c.by_megatron()) {
    throw training.error(
        "zero",
        fmt::format("{}, splits every block between replicas by the operators megatron; there are: 0, 1", c.zero));
  }
  if (c.splits_gradients() && !c.overlap_gradients) {
    throw training.error("overlap_gradients",
                         "false, does not apply: with zero 2 and 3 they are reduced block by block");
  }
  if (c.overlap_parameters && !(c.by_megatron() && c.zero == 1 && c.overlap_gradients)) {
    throw training.error("overlap_parameters", "needs the operators megatron, zero 1 and overlap_gradients");
  }
  check_offload(training, setup, c);
  resolve_overlap(training, setup.scenario, c);
  const bool has_mtp = setup.scenario.whole_model && setup.model.num_nextn_predict_layers > 0;
  if (training.has("mtp") && c.mtp && !has_mtp) {
    throw training.error("mtp", setup.scenario.whole_model
                                    ? fmt::format("does not apply: '{}' has no MTP module", setup.scenario.model)
                                    : "does not apply: these are MoE layers alone");
  }
  c.mtp = c.mtp && has_mtp;
}

void check_step(const Spec& scenario, const Scenario& s) {
  if (s.routing.distribution != Distribution::balanced && s.routing.distribution != Distribution::exact) {
    throw scenario.map("routing").error(
        "distribution", fmt::format("'{}' is not modelled in whole pipelines; there are: balanced, exact",
                                    word_of(s.routing.distribution)));
  }
  check_pipeline(scenario, s);
}

}  // namespace

std::vector<std::string> recomputed_modules(const RecomputedModules& modules) {
  return names_of(modules, modules_by_name());
}

std::vector<std::string> offloaded_modules(const OffloadedModules& modules) {
  return names_of(modules, offloaded_by_name());
}

void check_training_keys(const Spec& scenario, const ScheduleKind& schedule) {
  const Spec training = scenario.map_or_empty("training");
  const bool lists_modules = training.has("recompute") && training.is_list("recompute");
  const TrainingOperators usual = lists_modules ? TrainingOperators::megatron : TrainingOperators::deepseek;
  (void)read_choices(training, schedule, read_choice(training, "operators", usual));
  (void)read_choice(scenario, "level", Level::by_operator);
  if (scenario.has("stages") && !scenario.is_list("stages")) (void)scenario.choice("stages", {"balanced"});
}

void read_training(const Spec& scenario, Setup& setup) {
  Scenario& s = setup.scenario;
  const bool training = s.phase() == WorkloadPhase::train;
  if (scenario.has("training") && !training) throw scenario.error("training", "belongs to training");
  if (scenario.has("level") && !s.kind().pipeline) {
    throw scenario.error("level", fmt::format("belongs to pipelines of training, and {} is none", s.schedule));
  }
  if (!training) return;
  const Spec choices = scenario.map_or_empty("training");
  s.training = read_choices(choices, s.kind(), s.training.operators);
  resolve(choices, setup, s.training);
  if (!s.kind().pipeline) return;
  s.level = read_choice(scenario, "level", s.level);
  check_step(scenario, s);
}

}  // namespace moeline
