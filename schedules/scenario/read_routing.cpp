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

// The skews by which each rank's experts are chosen, for all MoE layers or for each: those that reach as many experts
// as the scenario says, or as many as if all lay on one rank.
std::vector<double> skews_of(const Spec& spec, const Scenario& s, const Architecture& model) {
  const Routing& r = s.routing;
  const double tokens = tokens_of_experts(s);
  const ExpertChoice on_one_rank{model.num_experts_per_tok, model.n_routed_experts, 1, r.alpha};
  const ExpertChoice on_ranks = expert_choice(s, model, 0);
  if (r.experts_hit.empty()) {
    // One token reaches as many whatever the skew, but the rows that pad its step choose by it, too.
    const double several = std::max(tokens, 2.0);
    return {skew_that_hits(experts_hit(several, on_one_rank), several, on_ranks)};
  }
  const auto layers = static_cast<std::size_t>(s.layers);
  if (r.experts_hit.size() != 1 && r.experts_hit.size() != layers) {
    throw spec.error("experts_hit",
                     fmt::format("must be one number, or one per MoE layer: {}, not {}", layers, r.experts_hit.size()));
  }
  constexpr double kRounding = 1e-9;
  const double most = experts_hit(tokens, on_ranks);
  const double least = experts_hit(tokens, expert_choice(s, model, kMostSkew));
  std::vector<double> skews;
  for (const double hit : r.experts_hit) {
    if (hit < least - kRounding || hit > most + kRounding) {
      throw spec.error("experts_hit",
                       fmt::format("must lie from {:.4g} to {:.4g}, not {:.4g}: so many do {:.4g} tokens reach that "
                                   "choose {} of {} experts as unlike as can be, and all alike",
                                   least, most, hit, tokens, on_ranks.top_k, on_ranks.slots));
    }
    skews.push_back(skew_that_hits(hit, tokens, on_ranks));
  }
  return skews;
}

void read_skew(const Spec& spec, const Architecture& model, Scenario& s) {
  if (spec.has("alpha") && spec.has("experts_hit")) {
    throw spec.error("experts_hit", "does not go with alpha: each says how unlike experts are chosen");
  }
  if (!spec.has("alpha")) s.routing.alpha = kUsualSkew;
  if (spec.has("experts_hit")) {
    const keys::Row& hit = keys::routing().at("experts_hit");
    s.routing.experts_hit = spec.is_list("experts_hit") ? hit.reals(spec) : std::vector{hit.real(spec)};
  }
  s.routing.skews = skews_of(spec, s, model);
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
  std::vector<std::string> modelled_words = all;
  std::erase(modelled_words, word_of(training ? Distribution::skewed : Distribution::given));
  if (spec.has("distribution")) {
    s.routing.distribution = choice_of<Distribution>(modelled(spec, "distribution", modelled_words, all));
  } else {
    s.routing.distribution = training ? Distribution::balanced : Distribution::skewed;
  }
  if (training && spec.has("redundant_experts")) {
    throw spec.error("redundant_experts", "belongs to prefill and decode");
  }
  keys::routing().read(spec, "redundant_experts", s);
}

void read_routing(const Spec& spec, const Architecture& model, int gpus_per_node, Scenario& s) {
  Routing& r = s.routing;
  if (!r.is_skewed()) check_belongs(spec, "alpha", Distribution::power_law, r);
  check_belongs(spec, "experts_hit", Distribution::skewed, r);
  for (const char* key : {"file", "step", "placed_before"}) check_belongs(spec, key, Distribution::file, r);
  check_belongs(spec, "rows", Distribution::given, r);
  for (const char* key : {"alpha", "placement"}) keys::routing().read(spec, key, s);
  if (r.distribution == Distribution::file) read_load_steps(spec, s);
  if (r.is_skewed() && model.n_routed_experts > 0) read_skew(spec, model, s);
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
