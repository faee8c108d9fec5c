#include "experiments/run/pipeline_layers.hpp"

namespace moeline {

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
  layers.variation.slowness = {slowest_of(setup.scenario.parallelism.ep, setup.scenario.speed_spread)};
  return layers;
}

}  // namespace moeline
