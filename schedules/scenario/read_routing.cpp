#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/scenario/keys.hpp"

namespace moeline {
namespace {

// Padded rows that one rank can get at most: every token of the group chooses as many of its experts as it may.
int most_rows(const Scenario& scenario, const Architecture& model) {
  constexpr double kMost = 1 << 30;
  const int experts = model.n_routed_experts / scenario.parallelism.ep;
  const TrainWorkload& w = as_train(scenario.workload);
  const double tokens = static_cast<double>(w.micro_batch_size) * w.seq_len;
  const double rows = tokens * scenario.parallelism.ep * std::min(model.num_experts_per_tok, experts);
  return static_cast<int>(std::min(kMost, rows + experts * kRowPadding));
}

std::vector<int> read_rows(const Spec& rows, const char* key, const Scenario& scenario, const Architecture& model) {
  std::vector<int> values = rows.integers(key, 1, most_rows(scenario, model));
  if (values.size() != static_cast<std::size_t>(scenario.layers)) {
    throw rows.error(
        key, fmt::format("must list one value per layer: {}, not {} (or set routing={{distribution: balanced}})",
                         scenario.layers, values.size()));
  }
  return values;
}

// A key that goes with one distribution alone.
void check_belongs(const Spec& spec, const char* key, Distribution distribution, const Routing& routing) {
  if (!spec.has(key) || routing.distribution == distribution) return;
  throw spec.error(
      key, fmt::format("belongs to the distribution {}, not {}", word_of(distribution), word_of(routing.distribution)));
}

void read_load_steps(const Spec& spec, Scenario& s) {
  Routing& r = s.routing;
  keys::routing().need(spec, "file", s);
  keys::routing().read(spec, "step", s);
  if (!spec.has("placed_before")) return;
  if (r.placement != PlacementRule::eplb) throw spec.error("placed_before", "is of the placement eplb");
  if (r.step < 0) return keys::routing().read(spec, "placed_before", s);
  r.placed_before = spec.integer("placed_before", 0, r.step);
}

void check_placement(const Spec& spec, const Scenario& scenario, const Architecture& model, int gpus_per_node) {
  const PlacementShape shape = placement_shape(scenario, model, gpus_per_node);
  const std::string broken = scenario.routing.placement == PlacementRule::eplb ? broken_rule(shape) : "";
  if (!broken.empty()) throw spec.error("placement", "eplb: " + broken);
}

}  // namespace

PlacementShape placement_shape(const Scenario& scenario, const Architecture& model, int gpus_per_node) {
  const int ep = scenario.parallelism.ep;
  return {model.n_routed_experts, model.n_routed_experts + scenario.routing.redundant_experts, model.n_group,
          std::max(1, ep / gpus_per_node), ep};
}

void read_distribution(const Spec& spec, Scenario& s) {
  spec.expect(keys::routing().names());
  const bool training = s.phase() == WorkloadPhase::train;
  const std::vector<std::string>& all = words_of<Distribution>();
  const std::vector<std::string> drawn(all.begin(), all.end() - 1);  // but for `given`
  s.routing.distribution = choice_of<Distribution>(modelled(spec, "distribution", training ? all : drawn, all));
  if (training && spec.has("redundant_experts")) {
    throw spec.error("redundant_experts", "belongs to prefill and decode");
  }
  keys::routing().read(spec, "redundant_experts", s);
}

void read_routing(const Spec& spec, const Architecture& model, int gpus_per_node, Scenario& s) {
  Routing& r = s.routing;
  check_belongs(spec, "alpha", Distribution::power_law, r);
  for (const char* key : {"file", "step", "placed_before"}) check_belongs(spec, key, Distribution::file, r);
  check_belongs(spec, "rows", Distribution::given, r);
  for (const char* key : {"alpha", "placement"}) keys::routing().read(spec, key, s);
  if (r.distribution == Distribution::file) read_load_steps(spec, s);
  if (r.has_loads()) check_placement(spec, s, model, gpus_per_node);
  if (spec.has("rows_spread") && r.has_loads()) {
    throw spec.error("rows_spread", "does not go with loads: they say what each rank gets");
  }
  keys::routing().read(spec, "rows_spread", s);
  if (r.distribution == Distribution::given) {
    const Spec rows = spec.map("rows");
    rows.expect({"forward", "backward"});
    r.forward_rows = read_rows(rows, "forward", s, model);
    r.backward_rows = read_rows(rows, "backward", s, model);
  }
}

}  // namespace moeline
