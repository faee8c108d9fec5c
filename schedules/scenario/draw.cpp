// What chance decides about a scenario: where tokens go, and how ranks differ.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/memo.hpp"
#include "routing/load_file.hpp"
#include "routing/rebalance.hpp"
#include "schedules/scenario/scenario.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

struct LoadsAndPast {
  Loads now;
  Loads past;  // that experts are placed by
};

// The position of a time step, of which there must be one with that number.
std::size_t position_of(const LoadFile& file, int step, const std::string& path) {
  const auto found = std::lower_bound(file.steps.begin(), file.steps.end(), step);
  if (found != file.steps.end() && *found == step) return static_cast<std::size_t>(found - file.steps.begin());
  throw SpecError(path, 0,
                  fmt::format("has no step {}; it has {} from {} to {}", step, file.steps.size(), file.steps.front(),
                              file.steps.back()));
}

// One of the time steps; experts are placed by the moving average of those before, or before an earlier one. Before the
// first there are none: it places for itself.
LoadsAndPast from_steps(const LoadFile& file, const Routing& routing) {
  const std::size_t now = routing.step < 0 ? file.steps.size() - 1 : position_of(file, routing.step, routing.file);
  const std::size_t placed = routing.placed_before < 0 ? now : position_of(file, routing.placed_before, routing.file);
  const std::vector<Loads> past(file.loads.begin(),
                                file.loads.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, placed)));
  return {.now = file.loads[now], .past = moving_average(past, RebalancePolicy{}.newest_weight)};
}

LoadFile read_loads(const Setup& setup, const std::filesystem::path& path) {
  LoadFile file =
      read_load_file(path, {.experts = setup.model.n_routed_experts, .ranks = setup.scenario.parallelism.ep});
  if (file.layers.size() != 1 && file.layers.size() != static_cast<std::size_t>(setup.model.moe_layers())) {
    throw SpecError(
        setup.scenario.routing.file, 0,
        fmt::format("has {} layers; the model has {} MoE layers", file.layers.size(), setup.model.moe_layers()));
  }
  const auto top_k = static_cast<std::ptrdiff_t>(setup.model.num_experts_per_tok);
  for (const Loads& step : file.loads) {
    for (std::size_t layer = 0; layer < step.size(); ++layer) {
      const auto is_loaded = [](double load) { return load > 0; };
      if (std::count_if(step[layer].begin(), step[layer].end(), is_loaded) >= top_k) continue;
      throw SpecError(setup.scenario.routing.file, 0,
                      fmt::format("layer {} has fewer than {} experts with a load, and every token chooses as many",
                                  file.layers[layer], top_k));
    }
  }
  return file;
}

LoadsAndPast drawn_loads(const Setup& setup) {
  const LoadSource source{.distribution = LoadDistribution::power_law,
                          .alpha = setup.scenario.routing.alpha,
                          .seed = static_cast<unsigned>(setup.scenario.seed),
                          .file = {}};
  const Loads loads = expert_loads(source, setup.scenario.layers, setup.model.n_routed_experts);
  return {.now = loads, .past = loads};
}

bool asks_reach(const Scenario& s) { return dispatcher_of(s.comm.mode).by_rank; }

std::vector<RoutedLayer> routed_by(const Setup& setup, const LoadsAndPast& loads) {
  const Scenario& s = setup.scenario;
  const PlacementShape shape = placement_shape(s, setup.model, static_cast<int>(setup.machine.facts.gpus_per_node));
  const Placement unaware = in_order(shape);
  std::vector<RoutedLayer> routed;
  for (std::size_t layer = 0; layer < loads.now.size(); ++layer) {
    Placement placement =
        s.routing.placement == PlacementRule::eplb
            ? place_experts(attainable_shares(loads.past[layer], setup.model.num_experts_per_tok), shape)
            : unaware;
    routed.push_back(routed_layer(gating_of(setup.model), loads.now[layer], std::move(placement), asks_reach(s),
                                  static_cast<unsigned>(s.seed)));
  }
  return routed;
}

// Of a model what its loads and their placement depend on: its name may be another's, too.
std::string gating_key(const Architecture& model) {
  const Gating gating = gating_of(model);
  return fmt::format("{} {} {} {} {}", gating.experts, gating.top_k, gating.groups, gating.kept_groups,
                     model.moe_layers());
}

// Everything but the file that routed layers depend on.
std::string routing_key(const Setup& setup) {
  const Scenario& s = setup.scenario;
  const PlacementShape shape = placement_shape(s, setup.model, static_cast<int>(setup.machine.facts.gpus_per_node));
  return fmt::format("{} {} {} {} {} {} {} {} {}", gating_key(setup.model), s.routing.step, s.routing.placed_before,
                     word_of(s.routing.placement), shape.replicas, shape.nodes, shape.gpus, asks_reach(s), s.seed);
}

// Of a day of loads a grid of steps asks again and again.
std::vector<RoutedLayer> route_by_file(const Setup& setup) {
  static FileMemo<LoadFile> files;
  static FileMemo<std::vector<RoutedLayer>> routed;
  const Routing& routing = setup.scenario.routing;
  const std::filesystem::path path = beside(setup.scenario.file, routing.file);
  const std::string model = fmt::format("{} {}", gating_key(setup.model), setup.scenario.parallelism.ep);
  const auto route = [&] {
    const auto file = files.get(
        path, [&] { return read_loads(setup, path); }, model);
    return routed_by(setup, from_steps(*file, routing));
  };
  return *routed.get(path, route, routing_key(setup));
}

std::vector<RoutedLayer> route(const Setup& setup) {
  if (setup.scenario.routing.distribution == Distribution::file) return route_by_file(setup);
  return routed_by(setup, drawn_loads(setup));
}

// The group that has most requests decides for all: their graphs meet in the same collectives.
void choose_graph(Setup& setup) {
  auto* decode = std::get_if<DecodeWorkload>(&setup.scenario.workload);
  if (decode == nullptr || decode->graph_choice != GraphBatch::by_stack) return;
  decode->graph_batch = habits::graph_batch(setup, setup.most_requests());
}

}  // namespace

void draw(Setup& setup, int seed) {
  Scenario& s = setup.scenario;
  s.seed = seed;
  if (s.slot_costs) return;  // of given slots nothing is left to chance
  setup.variation = setup.every_rank ? draw_ranks(s) : folded_ranks(s);
  choose_graph(setup);
  if (setup.model.n_routed_experts == 0) return;
  const bool unequal = s.routing.has_loads();
  setup.routed = unequal ? route(setup) : std::vector<RoutedLayer>{};
  if (!unequal && setup.spread.ranks_per_token == 0) {  // an expectation: other seeds would only move it by its error
    setup.spread = expected_spread(setup.model, s.parallelism.ep, static_cast<int>(setup.machine.facts.gpus_per_node),
                                   static_cast<unsigned>(seed), s.routing.redundant_experts);
  }
}

}  // namespace moeline
