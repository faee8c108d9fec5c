#include "schedules/scenario/stage_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

constexpr const char* kStages = "stages";

int decoder_layers(const Setup& setup) {
  return setup.scenario.whole_model ? setup.model.num_hidden_layers : setup.scenario.layers;
}

std::vector<int> read_list(const Spec& scenario, int stages, int layers) {
  std::vector<int> listed = scenario.integers(kStages, 1, layers);
  if (static_cast<int>(listed.size()) != stages) {
    throw scenario.error(kStages,
                         fmt::format("must list the decoder layers of {} stages, not of {}", stages, listed.size()));
  }
  const int sum = std::accumulate(listed.begin(), listed.end(), 0);
  if (sum != layers) throw scenario.error(kStages, fmt::format("list {} decoder layers; there are {}", sum, layers));
  return listed;
}

void check_balanced(const Spec& scenario, const Setup& setup) {
  const Scenario& s = setup.scenario;
  const auto units = static_cast<int>(units_of(training_blocks(s, setup.model)).size());
  if (stage_count(s) <= units) return;
  throw scenario.error(
      kStages, fmt::format("cannot be balanced: {} layers{} cannot be split over {} stages", decoder_layers(setup),
                           s.whole_model ? ", heads and MTP modules" : "", stage_count(s)));
}

// Of prefill and decode.
std::vector<int> split_evenly(const Spec& scenario, const Setup& setup) {
  const int layers = decoder_layers(setup);
  const int stages = setup.scenario.parallelism.pp;
  if (stages <= layers) return even_stages(setup, layers);
  throw scenario.map("parallelism").error("pp", fmt::format("has more stages than the {} layers: {}", layers, stages));
}

// What is simulated until a pipeline has its rhythm, and beyond (inference_pipeline.hpp): some rounds, or prompts.
void check_passes(const Spec& scenario, const Setup& setup) {
  constexpr std::int64_t kMost = 1 << 17;  // layers of passes; ten million tasks
  constexpr std::int64_t kRounds = 4;
  const std::int64_t of_round = passes(setup.scenario), stages = setup.scenario.parallelism.pp;
  const std::int64_t layers = decoder_layers(setup), most = std::max(kMost / kRounds / layers, std::int64_t{1});
  if (std::max(of_round, stages) <= most) return;
  if (of_round <= stages) {
    throw scenario.map("parallelism")
        .error("pp", fmt::format("is {}, and {} at most are simulated of {} layers", stages, most, layers));
  }
  throw scenario.map("workload")
      .error("prompt_len", fmt::format("takes {} steps, and {} at most are simulated on stages", of_round, most));
}

}  // namespace

std::vector<int> read_stages(const Spec& scenario, const Setup& setup) {
  const Scenario& s = setup.scenario;
  const bool training = s.kind().pipeline.has_value();
  if (!training && !is_staged(s)) {
    if (scenario.has(kStages))
      throw scenario.error(kStages, fmt::format("belongs to pipelines, and {} is none", s.schedule));
    return {};
  }
  const int stages = training ? stage_count(s) : s.parallelism.pp;
  if (!training) check_passes(scenario, setup);
  if (scenario.is_list(kStages)) return read_list(scenario, stages, decoder_layers(setup));
  if (scenario.has(kStages)) (void)scenario.choice(kStages, {training ? "balanced" : "even"});
  if (!training) return split_evenly(scenario, setup);
  check_balanced(scenario, setup);
  return {};
}

}  // namespace moeline
