#include "experiments/cli/expected_waits.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "engine/simulate.hpp"
#include "experiments/cli/race.hpp"
#include "schedules/expected_maximum.hpp"
#include "schedules/schedules.hpp"

namespace moeline {
namespace {

constexpr int kDraws = 16;
constexpr int kDrawsOfEqualLayers = 2;  // their mean is over the layers, too
constexpr int kMostRanks = 256;
constexpr double kRowsStep = 0.1;  // by which rows are raised to see what they cost

// The same program with more rows on each rank; nothing where rows do not vary.
Timeline with_more_rows(const Setup& setup) {
  const Routing& routing = setup.scenario.routing;
  if (routing.rows_spread == 0 && routing.forward_rows.empty()) return {};
  Setup more = setup;
  more.rows_factor = 1 + kRowsStep;
  return simulate(build_program(more).graph);
}

// Layers of inference are alike, and meet so often that nothing adds up from one to the next: what differs is chance.
void average_over_layers(const Program& alone, std::vector<double>& waits) {
  std::map<std::pair<std::string, std::uint32_t>, std::pair<double, int>> sums;  // by phase and micro-batch
  const auto sum_of = [&](std::size_t meeting) -> std::pair<double, int>& {
    const Phase& phase = alone.graph.phases()[alone.meetings[meeting].phase];
    return sums[{phase.name, phase.micro_batch}];
  };
  for (std::size_t i = 0; i < waits.size(); ++i) {
    sum_of(i).first += waits[i];
    ++sum_of(i).second;
  }
  for (std::size_t i = 0; i < waits.size(); ++i) waits[i] = sum_of(i).first / sum_of(i).second;
}

// By meeting of `alone`, the program without waits.
std::vector<double> race_waits(const Setup& setup, const Program& alone, int draws) {
  const int all = setup.scenario.parallelism.ep;
  const int ranks = std::min(all, kMostRanks);
  const double scale = (all == ranks ? 1 : expected_maximum(all) / expected_maximum(ranks)) / draws;
  const Course course = course_of(setup, alone, simulate(alone.graph), with_more_rows(setup), kRowsStep);
  std::vector<double> waits(alone.meetings.size(), 0);
  for (int draw = 0; draw < draws; ++draw) {
    Race race(setup, alone, course, ranks, static_cast<std::uint64_t>(draw));
    race.run();
    for (std::size_t i = 0; i < waits.size(); ++i) waits[i] += scale * race.wait_us(alone.meetings[i]);
  }
  return waits;
}

// In the MoE layers of a pass, whose ranks have drifted apart as far as they do: those of the second half of eight.
std::map<std::string, double> waits_by_phase(const Setup& setup, const char* schedule) {
  constexpr int kLayers = 8;
  constexpr int kPipelineDraws = 4;  // of four layers each
  Setup layers = setup;
  layers.scenario.schedule = schedule;
  layers.scenario.overlap = setup.scenario.overlap == "none" ? "default" : setup.scenario.overlap;
  if (layers.scenario.training.recompute == Recompute::full) {  // beside whose layers' passes these are as good
    layers.scenario.training.recompute = Recompute::none;
    layers.scenario.training.narrow_activations = false;
  }
  layers.scenario.whole_model = false;
  layers.scenario.layers = kLayers;
  const Program alone = build_program(layers);
  const std::vector<double> waits = race_waits(layers, alone, kPipelineDraws);
  std::map<std::string, double> means;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const Phase& phase = alone.graph.phases()[alone.meetings[i].phase];
    if (phase.layer >= kLayers / 2) means[phase.name] += waits[i] / (kLayers - kLayers / 2);
  }
  return means;
}

}  // namespace

Setup with_expected_waits(const Setup& setup) {
  Setup waiting = setup;
  if (setup.every_rank || setup.free_communication || setup.scenario.slot_costs) return waiting;
  if (is_training_step(setup.scenario)) {
    waiting.waits.alone_us = waits_by_phase(setup, "sequential");
    if (setup.scenario.schedule.starts_with("dualpipe")) {
      waiting.waits.overlapped_us = waits_by_phase(setup, "dualpipe-chunk");
    }
    return waiting;
  }
  const Program alone = build_program(setup);
  const bool equal_layers = setup.scenario.workload.phase != "train";
  waiting.waits.by_meeting = race_waits(setup, alone, equal_layers ? kDrawsOfEqualLayers : kDraws);
  if (equal_layers) average_over_layers(alone, waiting.waits.by_meeting);
  return waiting;
}

}  // namespace moeline
