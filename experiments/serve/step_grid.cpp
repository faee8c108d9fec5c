#include "experiments/serve/step_grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "base/random.hpp"
#include "moe/memory.hpp"
#include "routing/rebalance.hpp"
#include "schedules/lowering/inference_program.hpp"
#include "schedules/scenario/fold.hpp"
#include "schedules/scenario/read_scenario.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

constexpr int kFewestKeys = 64;

using Between = StepGrid::Between;

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

std::array<int, 6> rounded(const StepLoad& load, int fewest_answers, int graph) {
  const auto whole = [](double value, int fewest) {
    return value > 0 ? std::max(fewest, static_cast<int>(std::lround(value))) : 0;
  };
  return {whole(load.answers, fewest_answers),
          whole(load.keys, 1),
          whole(load.prompts, 1),
          whole(load.seen, 1),
          whole(load.parts, 1),
          graph};
}

// Requests beside those of a graph have another one.
Between clipped(const Between& axis, double value, int graph) {
  if (graph == 0 || axis.high <= graph) return axis;
  return axis.low < graph ? between_ends(value, axis.low, graph) : Between{graph, graph, 0};
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

StepLoad answers_of(const StepLoad& load) { return {.answers = load.answers, .keys = load.keys}; }
StepLoad prompts_of(const StepLoad& load) { return {.prompts = load.prompts, .seen = load.seen, .parts = load.parts}; }

}  // namespace

StepGrid::StepGrid(Spec scenario, std::vector<std::string> assignments, const ServeWorkload& workload, RequestPart part)
    : scenario_(std::move(scenario)),
      assignments_(std::move(assignments)),
      drafts_(drafts_of(workload)),
      told_batch_(workload.batch_size),
      graph_choice_(workload.graph_choice),
      graph_batch_(workload.graph_batch),
      computes_prompts_(part != RequestPart::answer),
      answers_(part != RequestPart::prompt),
      moves_(part != RequestPart::all || workload.loads.moves_beside),
      fewest_answers_(fewest_answers(scenario_, assignments_)),
      one_(setup_of(part == RequestPart::prompt ? Point{0, 0, kFewestKeys, kFewestKeys, 1, 0}
                                                : Point{fewest_answers_, kFewestKeys, 0, 0, 0, 0})),
      cache_(one_, !drafts_.empty()),
      bytes_of_token_(cache_.bytes_of_token()) {}

// Of several prompts each has as many tokens, and sees as many keys.
Setup StepGrid::setup_of(const Point& point, double kv_transfer_MB) const {
  const auto [answers, keys, prompts, seen, parts, graph] = point;
  const std::string beside = kv_transfer_MB > 0 ? fmt::format(", kv_transfer_MB: {}", kv_transfer_MB) : "";
  const std::string rows = graph > 0 ? std::to_string(graph) : word_of(GraphBatch::exact);
  const std::string decode =
      fmt::format("batch_size: {}, kv_len: {}{}, graph_batch: {}", answers, std::max(1, keys), drafts_, rows);
  const std::string prefill = fmt::format("tokens: {}, prompt_len: {}, cached_len: {}", prompts, std::max(1, seen),
                                          std::max(0, seen - (prompts + parts - 1) / std::max(1, parts)));
  const std::string workload = prompts == 0   ? "phase: decode, " + decode
                               : answers == 0 ? "phase: prefill, " + prefill
                                              : "phase: mixed, " + decode + ", " + prefill;
  std::vector<std::string> assignments = assignments_;
  assignments.push_back("workload={" + workload + beside + "}");
  Setup setup = folded(read_setup(scenario_, assignments));
  setup.scenario.memory.told_batch = told_batch_;
  return setup;
}

StepGrid::Cost StepGrid::simulated_cost(const Point& point, bool moves) const {
  const Run run = run_scenario(setup_of(point));
  const bool alone = run.setup.scenario.parallelism.attention_groups() == 1;
  Cost cost{.ms = to_us(run.metrics.span) / 1e3, .own_ms = alone ? 0 : own_us(run) / 1e3};
  cost.beside_ms = cost.ms;
  cost.known = moeline::known_time(run);
  const bool does_both = point[0] > 0 && point[2] > 0;  // then caches stay where they are
  if (moves && !does_both) add_transfer(point, cost);
  return cost;
}

// As much as the NIC moves in the time of the step, alone: what shares the NIC with it makes both later by about as
// much.
void StepGrid::add_transfer(const Point& point, Cost& cost) const {
  const double moved_MB = cost.ms * one_.machine.facts.nic_GBps;  // GB/s are MB/ms
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

double StepGrid::weight_of(const Axes& axes, unsigned corner) {
  double weight = 1;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    weight *= (corner >> axis & 1U) != 0 ? axes[axis].share : 1 - axes[axis].share;
  }
  return weight;
}

// A group's own phases, of two groups of different work those of the longer.
double StepGrid::own_ms_of(const StepLoad& busiest, int graph) {
  if (!busiest.apart) return between(busiest, graph).own_ms;
  return std::max(between(answers_of(busiest), graph).own_ms, between(prompts_of(busiest), graph).own_ms);
}

// Steps that have prompts run without a graph.
int StepGrid::graph_of(const StepLoad& busiest) const {
  if (busiest.answers == 0 || busiest.prompts > 0) return 0;
  if (graph_choice_ != GraphBatch::by_stack) return graph_batch_;
  return habits::graph_batch(one_, std::max(fewest_answers_, static_cast<int>(std::lround(busiest.answers))));
}

int StepGrid::known_graph(const StepLoad& busiest) {
  if (busiest.answers == 0 || busiest.prompts > 0) return 0;
  const auto [known, is_new] = graphs_.try_emplace(static_cast<int>(std::lround(busiest.answers)));
  if (is_new) known->second = graph_of(busiest);
  return known->second;
}

StepGrid::Point StepGrid::point_at(const Axes& axes, int graph, unsigned corner) {
  Point point{};
  point.back() = graph;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    point[axis] = (corner >> axis & 1U) != 0 ? axes[axis].high : axes[axis].low;
  }
  return point;
}

// Its corners that are asked for.
void StepGrid::fill(Cell& cell, const Axes& axes, int graph) {
  std::vector<Point> unknown;
  for (unsigned corner = 0; corner < cell.size(); ++corner) {
    const Point point = point_at(axes, graph, corner);
    if (weight_of(axes, corner) > 0 && !known_.contains(point)) unknown.push_back(point);
  }
  std::vector<Cost> costs(unknown.size());
  parallel_for(unknown.size(), cores(), [&](std::size_t i) { costs[i] = simulated_cost(unknown[i], moves_); });
  for (std::size_t i = 0; i < unknown.size(); ++i) known_.emplace(unknown[i], costs[i]);
  for (unsigned corner = 0; corner < cell.size(); ++corner) {
    if (weight_of(axes, corner) > 0) cell[corner] = &known_.at(point_at(axes, graph, corner));
  }
}

// In the order of the points, so that sums are the same whatever order they were simulated in.
KnownTime StepGrid::known_time() const {
  const std::map<Point, Cost> in_order(known_.begin(), known_.end());
  KnownTime sum;
  for (const auto& [point, cost] : in_order) sum.add(cost.known);
  return sum;
}

StepGrid::Axes StepGrid::axes_of(const StepLoad& load, int graph) const {
  const Between none{};
  const double answers = std::max<double>(load.answers, fewest_answers_);
  return {load.answers > 0 ? clipped(of_count(answers, 1), answers, graph) : none,
          load.answers > 0 ? of_keys(load.keys) : none, load.prompts > 0 ? of_count(load.prompts, kFewestKeys) : none,
          load.prompts > 0 ? of_keys(load.seen) : none, load.prompts > 0 ? of_count(load.parts, 1) : none};
}

StepGrid::Cost StepGrid::between(const StepLoad& load, int graph) {
  const Axes axes = axes_of(load, graph);
  const Point least = point_at(axes, graph, 0);
  const auto [found, is_new] = cells_.try_emplace(least);
  if (is_new) cells_in_turn_.push_back(least);
  Cell& cell = found->second;
  Cost sum{.nic_share = 0};
  for (unsigned corner = 0; corner < cell.size(); ++corner) {
    const double weight = weight_of(axes, corner);
    if (weight <= 0) continue;
    if (cell[corner] == nullptr) fill(cell, axes, graph);
    sum.ms += weight * cell[corner]->ms;
    sum.own_ms += weight * cell[corner]->own_ms;
    sum.beside_ms += weight * cell[corner]->beside_ms;
    sum.nic_share += weight * cell[corner]->nic_share;
  }
  return sum;
}

double StepGrid::error_in_middle(std::size_t cell) {
  const auto [answers, keys, prompts, seen, parts, graph] = cells_in_turn_[cell];
  const auto behind = [](int low) { return std::nextafter(static_cast<double>(low), INFINITY); };
  const auto middle = [](int low, const Between& axis) { return low == 0 ? 0 : (axis.low + axis.high) / 2; };
  const int fewest = answers > 0 ? fewest_answers_ : 0;
  const Between of_answers = clipped(of_count(behind(answers), 1), answers, graph);
  const Point point{std::max(fewest, middle(answers, of_answers)),
                    middle(keys, of_keys(behind(keys))),
                    middle(prompts, of_count(behind(prompts), kFewestKeys)),
                    middle(seen, of_keys(behind(seen))),
                    parts,
                    graph};
  const StepLoad load{.answers = double(point[0]),
                      .keys = double(point[1]),
                      .prompts = double(point[2]),
                      .seen = double(point[3]),
                      .parts = double(point[4])};
  return std::abs(between(load, graph).ms / simulated_cost(point, false).ms - 1);
}

// What moves beside a part of the step makes it longer by that part of what it would all along.
StepTime StepGrid::combined(const Cost& mean, double busiest_own_ms, double moved_MB) const {
  const double ms = mean.ms + std::max(0.0, busiest_own_ms - mean.own_ms);
  if (moved_MB == 0) return ms;
  const double needed_ms = nic_ms(moved_MB) / mean.nic_share;
  const double beside = std::min(1.0, needed_ms / mean.beside_ms);
  const double left = std::max(0.0, 1 - mean.beside_ms / needed_ms);
  return {ms + beside * (mean.beside_ms - mean.ms), left * moved_MB};
}

StepTime StepGrid::time(const StepLoad& busiest, const StepLoad& mean) {
  const bool alone = one_.scenario.parallelism.attention_groups() == 1;
  const int graph = known_graph(busiest);
  const Cost cost = between(mean, graph);
  StepTime time = combined(cost, alone ? 0 : own_ms_of(busiest, graph), mean.moved_MB);
  time.graph_batch = graph;
  return time;
}

double StepGrid::exact_ms(const StepLoad& busiest, const StepLoad& mean) const {
  const int graph = graph_of(busiest);
  const Point middle = rounded(mean, fewest_answers_, graph);
  const auto own = [&](const StepLoad& load) {
    const Point most = rounded(load, fewest_answers_, graph);
    return most == middle ? 0 : simulated_cost(most, false).own_ms;
  };
  const double own_ms = busiest.apart ? std::max(own(answers_of(busiest)), own(prompts_of(busiest))) : own(busiest);
  return combined(simulated_cost(middle, mean.moved_MB > 0), own_ms, mean.moved_MB).ms;
}

double StepGrid::transfer_ms(double tokens, const StepLoad& mean) {
  const bool runs = mean.answers + mean.prompts > 0;
  return nic_ms(tokens * token_MB()) / (runs ? between(mean, known_graph(mean)).nic_share : 1);
}

namespace {

// Requests of an attention group that there may be at a time.
int most_there(const ServeWorkload& w, int groups) {
  constexpr int kMost = 4096;
  if (w.concurrency > 0) return std::min(kMost, (w.concurrency - 1) / (w.replicas * groups) + 1);
  return kMost;
}

// Of a request, in the cache.
int usual_length(const ServeWorkload& w) {
  if (w.trace.empty()) return w.input.mean + w.output.mean;
  double sum = 0;
  for (const TracedRequest& each : w.trace) sum += 1.0 * each.asked.input_len + each.asked.output_len;
  return static_cast<int>(sum / static_cast<double>(w.trace.size()));
}

// Tokens that its last chunk sees, of a long prompt.
int most_seen(const ServeWorkload& w) {
  int most = long_one(w.input);
  for (const TracedRequest& each : w.trace) most = std::max(most, each.asked.input_len);
  return std::max(w.tokens, most);
}

}  // namespace

// With as many requests of usual length as may run and fit: buffers and activations are as large as those need.
Memory StepGrid::memory_of_answers(const ServeWorkload& w) const {
  const int usual = std::max(1, usual_length(w));
  const auto memory = [&](int answers) { return memory_of(setup_of({answers, usual, 0, 0, 0, 0}), !drafts_.empty()); };
  const int limit = std::min(most_there(w, one_.scenario.parallelism.attention_groups()),
                             habits::most_running(one_, habits::kNoLimit));
  const auto fit = [&](int answers) { return fits(one_, memory(answers)); };
  return memory(std::max(fewest_answers_, largest_that_fits(fewest_answers_, limit, fit)));
}

Memory StepGrid::memory(const ServeWorkload& w) const {
  // A step that does both has no more tokens than one of prompts.
  Memory memory = answers_ ? memory_of_answers(w) : Memory{};
  if (computes_prompts_) {
    const Memory prompts = memory_of(setup_of({0, 0, w.tokens, most_seen(w), 1, 0}), !drafts_.empty());
    memory = answers_ ? of_both(memory, prompts, false) : prompts;
  }
  memory.states = memory.kv_cache = 0;
  const double room = room_for_caches(one_, memory);
  if (room <= 0) throw SpecError("does not fit, even without requests: " + what_is_over(one_, memory));
  memory.kv_cache = room;
  return memory;
}

ReplicaShape StepGrid::shape(const Memory& memory) const {
  const double kv_tokens = memory.kv_cache / bytes_of_token_;
  const auto taken = [cache = cache_, unit = bytes_of_token_](double tokens) { return cache.bytes(tokens) / unit; };
  return {.groups = one_.scenario.parallelism.attention_groups(),
          .kv_tokens = kv_tokens,
          .taken = taken,
          .most_running = habits::most_running(one_, kv_tokens)};
}

}  // namespace moeline
