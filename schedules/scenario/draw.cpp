// What chance decides about a scenario: where tokens go, and how ranks differ.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "routing/load_file.hpp"
#include "routing/rebalance.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {
namespace {

struct LoadsAndPast {
  Loads now;
  Loads past;  // that experts are placed by
};

// Of several time steps the last is simulated; experts are placed by the moving average of those before.
LoadsAndPast from_steps(std::vector<Loads> steps) {
  LoadsAndPast loads;
  loads.now = std::move(steps.back());
  steps.pop_back();
  loads.past = steps.empty() ? loads.now : moving_average(steps, RebalancePolicy{}.newest_weight);
  return loads;
}

LoadsAndPast read_loads(const Setup& setup) {
  const Routing& routing = setup.scenario.routing;
  LoadFile file = read_load_file(beside(setup.scenario.file, routing.file),
                                 {.experts = setup.model.n_routed_experts, .ranks = setup.scenario.parallelism.ep});
  if (file.layers.size() != 1 && file.layers.size() != static_cast<std::size_t>(setup.model.moe_layers())) {
    throw SpecError(
        routing.file, 0,
        fmt::format("has {} layers; the model has {} MoE layers", file.layers.size(), setup.model.moe_layers()));
  }
  const auto top_k = static_cast<std::ptrdiff_t>(setup.model.num_experts_per_tok);
  for (const Loads& step : file.loads) {
    for (std::size_t layer = 0; layer < step.size(); ++layer) {
      const auto is_loaded = [](double load) { return load > 0; };
      if (std::count_if(step[layer].begin(), step[layer].end(), is_loaded) >= top_k) continue;
      throw SpecError(routing.file, 0,
                      fmt::format("layer {} has fewer than {} experts with a load, and every token chooses as many",
                                  file.layers[layer], top_k));
    }
  }
  return from_steps(std::move(file.loads));
}

LoadsAndPast loads_of(const Setup& setup) {
  if (setup.scenario.routing.distribution == Distribution::file) return read_loads(setup);
  const LoadSource source{.distribution = LoadDistribution::power_law,
                          .alpha = setup.scenario.routing.alpha,
                          .seed = static_cast<unsigned>(setup.scenario.seed),
                          .file = {}};
  return from_steps({expert_loads(source, setup.scenario.layers, setup.model.n_routed_experts)});
}

std::vector<RoutedLayer> route(const Setup& setup) {
  const Scenario& s = setup.scenario;
  const LoadsAndPast loads = loads_of(setup);
  const PlacementShape shape = placement_shape(s, setup.model, static_cast<int>(setup.machine.facts.gpus_per_node));
  const Placement unaware = in_order(shape);
  const bool reach = s.comm.mode == CommMode::normal || s.comm.mode == CommMode::nvlink;
  std::vector<RoutedLayer> routed;
  for (std::size_t layer = 0; layer < loads.now.size(); ++layer) {
    Placement placement =
        s.routing.placement == PlacementRule::eplb
            ? place_experts(attainable_shares(loads.past[layer], setup.model.num_experts_per_tok), shape)
            : unaware;
    routed.push_back(routed_layer(gating_of(setup.model), loads.now[layer], std::move(placement), reach,
                                  static_cast<unsigned>(s.seed)));
  }
  return routed;
}

}  // namespace

void draw(Setup& setup, int seed) {
  Scenario& s = setup.scenario;
  s.seed = seed;
  if (s.slot_costs) return;  // of given slots nothing is left to chance
  setup.variation = setup.every_rank ? draw_ranks(s) : folded_ranks(s);
  if (setup.model.n_routed_experts == 0) return;
  const bool unequal = s.routing.has_loads();
  setup.routed = unequal ? route(setup) : std::vector<RoutedLayer>{};
  if (!unequal && setup.spread.ranks_per_token == 0) {  // an expectation: other seeds would only move it by its error
    setup.spread = expected_spread(setup.model, s.parallelism.ep, static_cast<int>(setup.machine.facts.gpus_per_node),
                                   static_cast<unsigned>(seed), s.routing.redundant_experts);
  }
}

}  // namespace moeline
