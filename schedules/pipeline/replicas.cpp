#include "schedules/pipeline/replicas.hpp"

#include <algorithm>

#include "moe/kernels.hpp"

namespace moeline {
namespace {

int gpus_per_node(const Setup& setup) { return static_cast<int>(setup.machine.facts.gpus_per_node); }

bool one_node(const Setup& setup) { return setup.scenario.parallelism.world() <= gpus_per_node(setup); }

// `distance`: GPUs from one rank to the next.
Reach reach_of(const Setup& setup, int gpus, int distance) {
  if (one_node(setup)) return {gpus, 0};
  return {gpus, std::max(1.0, static_cast<double>(distance) / gpus_per_node(setup))};
}

// `within`: replicas among the ranks of one stage, so far apart.
Replicas replicas(const Setup& setup, int within, int distance, int copies) {
  const Parallelism& p = setup.scenario.parallelism;
  const int span = copies > 1 ? static_cast<int>(p.world()) : p.attention_ranks() * p.dp;
  Replicas all{.ranks = within * copies, .per_node = within * copies, .reach = reach_of(setup, span, distance)};
  if (!one_node(setup)) all.per_node = std::clamp(gpus_per_node(setup) / distance, 1, within);
  if (all.ranks <= all.per_node) all.reach.neighbour_nodes = 0;
  return all;
}

}  // namespace

Reach next_stage(const Setup& setup) {
  const Parallelism& p = setup.scenario.parallelism;
  const auto stage = static_cast<int>(p.world() / p.pp);
  return reach_of(setup, 2 * stage, stage);
}

Replicas replicas_of_stage(const Setup& setup, int copies) {
  const Parallelism& p = setup.scenario.parallelism;
  return replicas(setup, p.cp * p.dp, p.tp, copies);
}

Replicas replicas_of_experts(const Setup& setup, int copies) {
  const Parallelism& p = setup.scenario.parallelism;
  const int sharing = p.ep * p.moe_tp;
  return replicas(setup, p.attention_ranks() * p.dp / sharing, sharing, copies);
}

std::array<SharedParameters, 2> shared_parameters(const Setup& setup, const StageParameters& own, int copies) {
  const bool megatron = setup.scenario.training.by_megatron();
  const auto shared = [&](double parameters, double weight_bytes, const Replicas& replicas) {
    return SharedParameters{parameters, weight_bytes, megatron ? parameters * kernels::kBf16 : weight_bytes, replicas};
  };
  return {shared(own.replicated, own.replicated_bytes, replicas_of_stage(setup, copies)),
          shared(own.experts, own.experts_bytes, replicas_of_experts(setup, copies))};
}

}  // namespace moeline
