#include "schedules/scenario/training_parts.hpp"

#include <fmt/format.h>

#include "architecture/checkpoint_format.hpp"
#include "schedules/scenario/pipeline_parts.hpp"

namespace moeline {
namespace {

void check_keys(const Spec& training, const ScheduleKind& schedule) {
  std::vector<std::string> keys = {"recompute", "activations", "weights"};
  if (schedule.pipeline) {
    keys.insert(keys.end(), {"gradients", "moments", "zero", "overlap_gradients", "overlap_sends", "mtp"});
  }
  training.expect(keys);
}

Recompute read_recompute(const Spec& training, const ScheduleKind& schedule) {
  if (!training.has("recompute")) return Recompute::selective;
  const std::string recompute = training.choice("recompute", {"selective", "none", "full"});
  if (recompute == "full" && !schedule.pipeline) throw training.error("recompute", "full is for whole pipelines");
  if (recompute == "none") return Recompute::none;
  return recompute == "full" ? Recompute::full : Recompute::selective;
}

// One of two words, the first by default: is it that?
bool is_first(const Spec& training, const char* key, const char* first, const char* second) {
  return !training.has(key) || training.choice(key, {first, second}) == first;
}

// Sends overlap by default where the schedule's authors overlap them.
TrainingChoices read_choices(const Spec& training, const ScheduleKind& schedule) {
  check_keys(training, schedule);
  TrainingChoices c;
  c.recompute = read_recompute(training, schedule);
  c.narrow_activations = is_first(training, "activations", "fp8", "bf16") && c.recompute != Recompute::full;
  if (training.has("weights")) (void)training.choice("weights", {"fp8", "bf16"});
  c.fp32_gradients = is_first(training, "gradients", "fp32", "bf16");
  c.fp32_moments = !is_first(training, "moments", "bf16", "fp32");
  c.zero1 = training.integer_or("zero", 0, 1, 1) == 1;
  c.overlap_sends = schedule.pipeline && schedule.pipeline->overlaps_sends;
  if (training.has("overlap_gradients")) c.overlap_gradients = training.flag("overlap_gradients");
  if (training.has("overlap_sends")) c.overlap_sends = training.flag("overlap_sends");
  if (training.has("mtp")) c.mtp = training.flag("mtp");
  return c;
}

// The kernels of training are those of FP8 linear layers, in whatever format a checkpoint was saved: of one that is in
// another, the scenario says that it is to be trained so.
void read_weights(const Spec& scenario, const Spec& training, Setup& setup) {
  if (training.text_or("weights", "fp8") != "fp8") {
    throw training.error("weights", "must be fp8: training in BF16 is not modelled yet");
  }
  const bool fp8 = setup.model.weights == Precision::fp8 && setup.model.expert_weights == Precision::fp8;
  if (!fp8 && !training.has("weights")) {
    throw scenario.error("model", fmt::format("'{}' has weights that are not FP8, and training is modelled in FP8 "
                                              "alone: training={{weights: fp8}} trains it so",
                                              setup.scenario.model));
  }
  store_linear_as(Precision::fp8, setup.model);
  store_experts_as(Precision::fp8, setup.model);
  setup.model.stored.clear();
}

// What is asked for and cannot be; defaults give way.
void resolve(const Spec& training, const Setup& setup, TrainingChoices& c) {
  if (c.recompute == Recompute::full && training.has("activations")) {
    throw training.error("activations", "do not apply: with full recomputation only layers' inputs are kept, in BF16");
  }
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
  (void)read_choices(scenario.map_or_empty("training"), schedule);
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
  s.training = read_choices(choices, s.kind());
  read_weights(scenario, choices, setup);
  resolve(choices, setup, s.training);
  if (!s.kind().pipeline) return;
  s.level = read_choice(scenario, "level", s.level);
  check_step(scenario, s);
}

}  // namespace moeline
