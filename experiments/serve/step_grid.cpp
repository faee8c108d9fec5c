#include "experiments/serve/step_grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "experiments/run/inference_memory.hpp"
#include "schedules/lowering/inference_program.hpp"
#include "schedules/scenario/fold.hpp"
#include "schedules/scenario/scenario_parts.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

constexpr int kFewestKeys = 64;

// Two neighbours on an axis, and how near the second is.
struct Between {
  int low = 0, high = 0;
  double share = 0;
};

Between between_ends(double value, int low, int high) { return {low, high, (value - low) / (high - low)}; }

// 1, 2, 3, 4, 6, 8, 12, ..., times `unit`.
Between of_count(double value, int unit) {
  value = std::max<double>(unit, value);
  int power = unit;
  while (2.0 * power < value) power *= 2;
  const int middle = power + power / 2;
  if (middle == power) return between_ends(value, power, 2 * power);
  return value <= middle ? between_ends(value, power, middle) : between_ends(value, middle, 2 * power);
}

// 64, 256, 1024, ...: attention takes so much for each key.
Between of_keys(double value) {
  value = std::max<double>(kFewestKeys, value);
  int power = kFewestKeys;
  while (4.0 * power < value) power *= 4;
  return between_ends(value, power, 4 * power);
}

std::array<int, 4> rounded(const StepLoad& load, int fewest_answers) {
  const auto whole = [](double value, int fewest) {
    return value > 0 ? std::max(fewest, static_cast<int>(std::lround(value))) : 0;
  };
  return {whole(load.answers, fewest_answers), whole(load.keys, 1), whole(load.prompts, 1), whole(load.seen, 1)};
}

// One for each micro-batch.
int fewest_answers(Spec scenario, const std::vector<std::string>& assignments) {
  (void)apply_changes(assignments, scenario);
  return at_key(scenario, "schedule", [&] { return schedule_named(scenario.text("schedule")).micro_batches; });
}

std::string drafts_of(const ServeWorkload& w) {
  if (w.query_len == 1) return "";
  const std::string layers = w.draft_layers > 0 ? fmt::format(", draft_layers: {}", w.draft_layers) : "";
  return fmt::format(", query_len: {}, mtp_acceptance: [{}]{}", w.query_len, fmt::join(w.acceptance, ", "), layers);
}

// What a group does for itself, however busy the others are.
double own_ms(const Run& run) {
  std::vector<Block> layers = inference_blocks(run.setup);
  std::erase_if(layers, [](const Block& block) { return !is_layer(block.kind); });
  const bool shared_beside = run.setup.scenario.shared_experts == SharedExperts::beside;
  double own = 0;
  for (const PhaseTimes& phase : run.phases) {
    const bool routed = phase.phase == "mlp" && layers[phase.layer].kind == BlockKind::moe_layer;
    if (is_transfer(phase.phase) || routed || (phase.phase == "shared" && shared_beside)) continue;
    own += to_us(phase.span()) / 1e3 * run.setup.fold.repeats(static_cast<int>(phase.layer));
  }
  return own;
}

}  // namespace

StepGrid::StepGrid(Spec scenario, std::vector<std::string> assignments, const ServeWorkload& workload, RequestPart part)
    : scenario_(std::move(scenario)),
      assignments_(std::move(assignments)),
      drafts_(part == RequestPart::prompt ? "" : drafts_of(workload)),
      computes_prompts_(part != RequestPart::answer),
      moves_caches_(part != RequestPart::all),
      fewest_answers_(fewest_answers(scenario_, assignments_)),
      one_(setup_of(part == RequestPart::prompt ? Point{0, 0, kFewestKeys, kFewestKeys}
                                                : Point{fewest_answers_, kFewestKeys, 0, 0})),
      bytes_of_token_(bytes_of_token()),
      bytes_of_step_(bytes_of_step(workload.tokens)) {}

// Tokens of prompts that see fewer keys than they are belong to several prompts.
Setup StepGrid::setup_of(const Point& point, double kv_transfer_MB) const {
  const auto [answers, keys, prompts, seen] = point;
  const std::string beside = kv_transfer_MB > 0 ? fmt::format(", kv_transfer_MB: {}", kv_transfer_MB) : "";
  const std::string decode = fmt::format("batch_size: {}, kv_len: {}{}", answers, std::max(1, keys), drafts_);
  const std::string prefill = fmt::format("tokens: {}, prompt_len: {}, cached_len: {}", prompts, std::max(1, seen),
                                          std::max(0, seen - prompts));
  const std::string workload = prompts == 0   ? "phase: decode, " + decode
                               : answers == 0 ? "phase: prefill, " + prefill
                                              : "phase: mixed, " + decode + ", " + prefill;
  std::vector<std::string> assignments = assignments_;
  assignments.push_back("workload={" + workload + beside + "}");
  return folded(read_setup(scenario_, assignments));
}

StepGrid::Cost StepGrid::simulated_cost(const Point& point) const {
  const Run run = run_scenario(setup_of(point));
  const bool alone = run.setup.scenario.parallelism.attention_groups() == 1;
  Cost cost{.ms = to_us(run.metrics.span) / 1e3, .own_ms = alone ? 0 : own_ms(run)};
  cost.beside_ms = cost.ms;
  if (moves_caches_) add_transfer(point, cost);
  return cost;
}

// As much as the NIC moves in the time of the step, alone: what shares the NIC with it makes both later by about as
// much.
void StepGrid::add_transfer(const Point& point, Cost& cost) const {
  const double moved_MB = cost.ms * one_.machine.facts.nic_GBps;
  const Run run = run_scenario(setup_of(point, moved_MB));
  Time step{}, moved{};
  for (const PhaseTimes& phase : run.phases) {
    Time& end = phase.phase == kKvTransferPhase ? moved : step;
    end = std::max(end, phase.end);
  }
  cost.beside_ms = std::max(cost.ms, to_us(step) / 1e3);
  cost.nic_share = std::min(1.0, cost.ms / (to_us(moved) / 1e3));
}

std::size_t StepGrid::PointHash::operator()(const Point& point) const {
  std::uint64_t hash = 0;
  for (const int each : point) hash = scrambled(hash ^ static_cast<std::uint64_t>(each));
  return hash;
}

const StepGrid::Cost* StepGrid::at(const Point& point) {
  const auto known = known_.find(point);
  return known != known_.end() ? &known->second : &known_.emplace(point, simulated_cost(point)).first->second;
}

StepGrid::Cost StepGrid::between(const StepLoad& load) {
  const Between none{};
  const std::array<Between, 4> axes = {
      load.answers > 0 ? of_count(std::max<double>(load.answers, fewest_answers_), 1) : none,
      load.answers > 0 ? of_keys(load.keys) : none, load.prompts > 0 ? of_count(load.prompts, kFewestKeys) : none,
      load.prompts > 0 ? of_keys(load.seen) : none};
  Cell& cell = cells_[{axes[0].low, axes[1].low, axes[2].low, axes[3].low}];
  Cost sum{.nic_share = 0};
  for (unsigned corner = 0; corner < cell.size(); ++corner) {
    double weight = 1;
    for (unsigned axis = 0; axis < axes.size(); ++axis) {
      weight *= (corner >> axis & 1U) != 0 ? axes[axis].share : 1 - axes[axis].share;
    }
    if (weight <= 0) continue;
    if (cell[corner] == nullptr) {
      Point point{};
      for (unsigned axis = 0; axis < axes.size(); ++axis) {
        point[axis] = (corner >> axis & 1U) != 0 ? axes[axis].high : axes[axis].low;
      }
      cell[corner] = at(point);
    }
    sum.ms += weight * cell[corner]->ms;
    sum.own_ms += weight * cell[corner]->own_ms;
    sum.beside_ms += weight * cell[corner]->beside_ms;
    sum.nic_share += weight * cell[corner]->nic_share;
  }
  return sum;
}

// Caches that move beside a part of the step make it longer by that part of what they would all along.
double StepGrid::combined(const Cost& mean, double busiest_own_ms, double moved) const {
  const double uneven = std::max(0.0, busiest_own_ms - mean.own_ms);
  if (moved == 0) return mean.ms + uneven;
  const double beside = std::min(1.0, nic_ms(moved) / mean.nic_share / mean.beside_ms);
  return mean.ms + uneven + beside * (mean.beside_ms - mean.ms);
}

double StepGrid::ms(const StepLoad& busiest, const StepLoad& mean) {
  const bool alone = one_.scenario.parallelism.attention_groups() == 1;
  const Cost cost = between(mean);
  return combined(cost, alone ? 0 : between(busiest).own_ms, mean.moved);
}

double StepGrid::exact_ms(const StepLoad& busiest, const StepLoad& mean) const {
  const Point most = rounded(busiest, fewest_answers_), middle = rounded(mean, fewest_answers_);
  return combined(simulated_cost(middle), most == middle ? 0 : simulated_cost(most).own_ms, mean.moved);
}

double StepGrid::nic_ms(double tokens) const { return tokens * bytes_of_token_ / (one_.machine.facts.nic_GBps * 1e6); }

double StepGrid::transfer_ms(double tokens, const StepLoad& mean) {
  const bool runs = mean.answers + mean.prompts > 0;
  return nic_ms(tokens) / (runs ? between(mean).nic_share : 1);
}

// In the KV cache of an attention group, on each of its GPUs.
double StepGrid::bytes_of_token() const {
  constexpr int kFew = 1024, kMany = 2048;
  const bool decodes = one_.scenario.phase() == WorkloadPhase::decode;
  const auto bytes = [&](int keys) {
    return memory_of(setup_of(decodes ? Point{fewest_answers_, keys, 0, 0} : Point{0, 0, kFewestKeys, keys})).kv_cache;
  };
  return (bytes(kMany) - bytes(kFew)) / (kMany - kFew) / (decodes ? fewest_answers_ : 1);
}

double StepGrid::bytes_of_step(int most_tokens) const {
  const Memory largest = memory_of(computes_prompts_ ? setup_of({0, 0, most_tokens, most_tokens}) : one_);
  return largest.total() - largest.kv_cache;
}

// What the largest step leaves.
ReplicaShape StepGrid::shape(double memory_reserve) const {
  const double left = (1 - memory_reserve) * one_.machine.facts.memory_gib * (1 << 30) - bytes_of_step_;
  return {.groups = one_.scenario.parallelism.attention_groups(), .kv_tokens = std::max(0.0, left / bytes_of_token_)};
}

ReplicaPool pool_of(StepGrid& grid, int replicas, double memory_reserve) {
  return {.replicas = replicas,
          .shape = grid.shape(memory_reserve),
          .step_ms = [&grid](const StepLoad& busiest, const StepLoad& mean) { return grid.ms(busiest, mean); }};
}

ServeDeployment deployment_of(StepGrid& answers, StepGrid* prompts, const ServeWorkload& workload,
                              double memory_reserve) {
  ServeDeployment deployment;
  deployment.answers = pool_of(answers, workload.replicas, memory_reserve);
  if (prompts == nullptr) return deployment;
  deployment.prompts = pool_of(*prompts, workload.prefill.replicas, memory_reserve);
  deployment.transfer_ms = [&answers, prompts](double tokens, const StepLoad& from, const StepLoad& to) {
    return std::max(prompts->transfer_ms(tokens, from), answers.transfer_ms(tokens, to));
  };
  return deployment;
}

}  // namespace moeline
