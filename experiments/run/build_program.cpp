#include "experiments/run/build_program.hpp"

#include <map>

#include "schedules/lowering/inference_step.hpp"
#include "schedules/schedules.hpp"

namespace moeline {
Program build_program(const Setup& setup) {
  static const std::map<std::string, Program (*)(const Setup&)> kPrograms = {
      {"sequential", sequential},     {"prefill-two-batch", planned_step}, {"decode-two-batch", planned_step},
      {"single-batch", planned_step}, {"per-expert", planned_step},        {"dualpipe-chunk", dualpipe_chunk}};
  const auto found = kPrograms.find(setup.scenario.schedule);
  MOELINE_CHECK(found != kPrograms.end(), setup.scenario.schedule);
  return found->second(setup);
}

Setup layers_of_pipeline(const Setup& setup, const char* schedule) {
  constexpr int kLayers = 8;
  Setup layers = setup;
  layers.scenario.schedule = schedule;
  layers.scenario.overlap = setup.scenario.overlap == "none" ? "default" : setup.scenario.overlap;
  if (layers.scenario.training.recompute == Recompute::full) {  // beside whose layers' passes these are as good
    layers.scenario.training.recompute = Recompute::none;
    layers.scenario.training.narrow_activations = false;
  }
  layers.scenario.whole_model = false;
  layers.scenario.layers = kLayers;
  layers.variation.slowness = {slowest_of(setup.scenario.parallelism.group(), setup.scenario.speed_spread)};
  return layers;
}

Setup one_pass(const Setup& setup) {
  Setup one = setup;
  Scenario& s = one.scenario;
  const int count = passes(s);
  if (auto* decode = std::get_if<DecodeWorkload>(&s.workload)) {
    for (int* requests : {&decode->batch_size, &decode->graph_batch}) *requests = (*requests + count - 1) / count;
  } else if (count > 1) {
    auto& prompts = std::get<PrefillWorkload>(s.workload);
    prompts.cached_len += (count - 1) * prompts.tokens / 2;
    prompts.prompt_len = prompts.cached_len + prompts.tokens;
  }
  s.parallelism.pp = 1;
  s.stage_layers.clear();
  if (s.speed_spread > 0) one.variation.slowness = {slowest_of(s.parallelism.group(), s.speed_spread)};
  return one;
}

}  // namespace moeline
