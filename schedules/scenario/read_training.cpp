#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "schedules/scenario/flag_list.hpp"
#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

// Megatron's selective recomputation (--recompute-granularity) is of the core alone.
void read_recompute(const Spec& training, const ScheduleKind& schedule, TrainingChoices& c) {
  c.recompute = habits::recompute(c.operators);
  if (!training.has("recompute")) return;
  if (training.is_list("recompute")) {
    if (!c.by_megatron()) throw training.error("recompute", "lists modules of the operators megatron alone");
    c.recompute = Recompute::selective;
    c.modules = read_flags<RecomputedModules>(training, "recompute", "module");
    return;
  }
  if (const std::string word = training.text("recompute");
      c.by_megatron() && flags_by_name<RecomputedModules>().contains(word)) {
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
    c.offload = read_flags<OffloadedModules>(training, "offload", "module");
  } else {
    (void)training.choice("offload", {"none"});
  }
}

// Of a key with two words: is it this one? The usual one is offered first.
bool is_word(const Spec& training, const char* key, const char* word, bool is_usual = true) {
  std::vector<std::string> words = keys::training().at(key).type.words;
  if ((words.front() == word) != is_usual) std::reverse(words.begin(), words.end());
  return training.has(key) ? training.choice(key, words) == word : is_usual;
}

// Sends overlap by default where the schedule's authors overlap them.
void read_choices(const Spec& training, const ScheduleKind& schedule, TrainingOperators operators, Scenario& s) {
  training.expect(keys::training().names(schedule.pipeline.has_value()));
  const auto read = [&](const char* key) { keys::training().read(training, key, s); };
  TrainingChoices& c = s.training;
  c = {.operators = operators};
  read_recompute(training, schedule, c);
  const bool fp8 = is_word(training, "activations", "fp8");
  c.narrow_activations = fp8 && c.recompute != Recompute::full && !c.by_megatron();
  c.fp32_gradients = is_word(training, "gradients", "fp32");
  c.fp32_moments = is_word(training, "moments", "fp32", habits::keeps_fp32_moments(operators));
  read("copies_moments");
  if (c.copies_moments && c.fp32_moments) {
    throw training.error("copies_moments", "copies moments in BF16, and moments is fp32; there is: moments: bf16");
  }
  read("zero");
  c.overlap_sends = schedule.pipeline && schedule.pipeline->overlaps_sends;
  read("overlap_gradients");
  c.overlap_parameters = c.by_megatron() && schedule.pipeline && c.overlap_gradients && c.zero == 1;
  for (const char* key : {"overlap_parameters", "delay_weight_gradients", "overlap_sends", "mtp"}) read(key);
  if (training.has("offload")) read_offload(training, c);
  read("offload_optimizer");
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

void check_training_keys(const Spec& scenario, const ScheduleKind& schedule) {
  const Spec training = scenario.map_or_empty("training");
  const bool lists_modules = training.has("recompute") && training.is_list("recompute");
  const TrainingOperators usual = lists_modules ? TrainingOperators::megatron : TrainingOperators::deepseek;
  Scenario unused;
  read_choices(training, schedule, read_choice(training, "operators", usual), unused);
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
  read_choices(choices, s.kind(), s.training.operators, s);
  resolve(choices, setup, s.training);
  if (!s.kind().pipeline) return;
  keys::top().read(scenario, "level", setup);
  check_step(scenario, s);
}

}  // namespace moeline
