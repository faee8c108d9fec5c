#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/time.hpp"
#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/pipeline_layout.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

constexpr long long kMostPasses = 1 << 20;  // of a micro-batch through a stage

// Empty where it is met.
std::string demand_on_micro_batches(const PipelineKind& kind, int pp, int count) {
  if (kind.whole_rounds && count % pp != 0) return fmt::format("a multiple of pp = {}", pp);
  if (count < kind.least_rounds * pp) {
    return kind.least_rounds == 1 ? fmt::format("at least pp = {}", pp)
                                  : fmt::format("at least {} x pp = {}", kind.least_rounds, kind.least_rounds * pp);
  }
  if (kind.two_directions && count % 2 != 0) return "an even number, half of it for each direction";
  return "";
}

void check_micro_batches(const Spec& workload, const Scenario& s) {
  const char* key = "global_batch_size";
  if (!workload.has(key)) throw workload.error(key, "is needed: a whole pipeline runs a whole step");
  const TrainWorkload& w = as_train(s.workload);
  const long long at_once = static_cast<long long>(s.parallelism.dp) * w.micro_batch_size;
  if (w.global_batch_size % at_once != 0) {
    throw workload.error(
        key, fmt::format("must be a multiple of dp x micro_batch_size = {}: {} is not", at_once, w.global_batch_size));
  }
  const int count = micro_batches(s);
  if (w.seq_lens.size() > static_cast<std::size_t>(count)) {
    throw workload.error("seq_len", fmt::format("lists {} lengths for {} micro-batches", w.seq_lens.size(), count));
  }
  if (!w.seq_lens.empty() && s.slot_costs) {
    throw workload.error("seq_len", "lists lengths, but slot_costs_ms says how long slots take");
  }
  const std::string demand = demand_on_micro_batches(*s.kind().pipeline, s.parallelism.pp, count);
  if (demand.empty()) return;
  throw workload.error(key, fmt::format("gives {} micro-batches; {} needs {}", count, s.schedule, demand));
}

// About as many kernels as a layer of the published profile has, forward and backward.
void check_operators(const Spec& spec, const Scenario& s, long long passes) {
  constexpr long long kMostTasks = 40'000'000;  // 10 GB
  constexpr long long kTasksPerLayer = 250;
  const long long tasks = passes * std::max(1, s.layers / stage_count(s)) * kTasksPerLayer;
  if (tasks <= kMostTasks) return;
  throw spec.map("workload")
      .error("global_batch_size",
             fmt::format("gives about {} million operators, and 40 are simulated at most", tasks / 1'000'000));
}

// Neither the machine's memory nor picoseconds in 64 bits are endless.
void check_size(const Spec& spec, const Scenario& s) {
  const long long passes = static_cast<long long>(micro_batches(s)) * stage_count(s);
  if (passes > kMostPasses) {
    const std::string message = fmt::format("gives {} micro-batches: more than {} passes through stages, {}",
                                            micro_batches(s), kMostPasses, passes);
    throw spec.map("workload").error("global_batch_size", message);
  }
  if (!s.slot_costs) return check_operators(spec, s, passes);
  const SlotCosts& costs = *s.slot_costs;
  const double serial_us = static_cast<double>(passes) * (costs.f + costs.b + costs.f_and_b) * 1e3;
  if (serial_us > kLongestTimeUs) throw spec.error("slot_costs_ms", "make the step longer than 11 days");
}

// All that are given are checked, so that one file serves every schedule.
SlotCosts read_costs(const Spec& costs, const PipelineKind& kind, bool overlaps) {
  costs.expect(keys::slot_costs().names());
  SlotCosts c;
  keys::slot_costs().read_all(costs, c);
  if (kind.splits_backward) keys::slot_costs().need(costs, "W", c);
  if (overlaps) keys::slot_costs().need(costs, "F&B", c);
  if (c.w > c.b) {
    throw costs.error("W", fmt::format("must be at most B, of which it is a part: {} is above {}", c.w, c.b));
  }
  const double longer = std::max(c.f, c.b);
  if (costs.has("F&B") && c.f_and_b < longer) {
    throw costs.error("F&B",
                      fmt::format("must be at least F and B, which it overlaps: {} is below {}", c.f_and_b, longer));
  }
  return c;
}

}  // namespace

void read_pipeline_keys(const Spec& spec, const ScheduleKind& schedule, Parallelism& p) {
  (void)spec.integer("pp", 1, kMostPipelineRanks);
  if (schedule.pipeline->stages_per_rank == 0) {
    p.virtual_pp = spec.integer("virtual_pp", 2, kMostChunks);
  } else if (spec.stands("virtual_pp")) {
    throw spec.error("virtual_pp", fmt::format("belongs to interleaved-1f1b, not to {}", schedule.name));
  }
  if (schedule.pipeline->two_directions && p.pp % 2 != 0) {
    throw spec.error(
        "pp", fmt::format("must be even for {}, whose directions meet in the middle: {} is odd", schedule.name, p.pp));
  }
}

Parallelism read_pipeline_parallelism(const Spec& spec, const ScheduleKind& schedule) {
  spec.expect(keys::parallelism().names());
  Parallelism p = read_world(spec, spec.integer_or("ep", 1, kMostRanks, 1));
  read_pipeline_keys(spec, schedule, p);
  return p;
}

SlotCosts read_slot_costs(const Spec& spec, const Scenario& scenario) {
  const char* key = "slot_costs_ms";
  const ScheduleKind& schedule = scenario.kind();
  if (!schedule.pipeline) {
    throw spec.error(key, fmt::format("belongs to schedules of whole pipelines, and {} is none", schedule.name));
  }
  const bool overlaps = schedule.may_combine() ? overlaps_passes(scenario) : schedule.pipeline->overlaps_passes;
  SlotCosts costs = read_costs(spec.map(key), *schedule.pipeline, overlaps);
  if (!schedule.pipeline->splits_backward) costs.w = 0;
  if (!overlaps) costs.f_and_b = 0;
  return costs;
}

void check_pipeline(const Spec& spec, const Scenario& scenario) {
  check_micro_batches(spec.map("workload"), scenario);
  check_size(spec, scenario);
}

namespace {

constexpr const char* kStages = "stages";

int decoder_layers(const Setup& setup) {
  return setup.scenario.whole_model ? setup.model.num_hidden_layers : setup.scenario.layers;
}

// A stage of the embedding alone passes no gradients on: there is nothing to split.
void check_embedding_alone(const Spec& scenario, const Scenario& s) {
  if (!s.kind().pipeline->splits_backward) return;
  throw scenario.error(kStages, fmt::format("have the embedding alone on the first, which {} cannot: its backward pass "
                                            "has no gradients of inputs",
                                            s.schedule));
}

// The first and the last stage of training may have no more than the embedding and the loss.
void check_empty(const Spec& scenario, const std::vector<int>& listed, const Setup& setup) {
  const Scenario& s = setup.scenario;
  const bool has_ends = s.kind().pipeline.has_value() && s.whole_model;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i] > 0 || (has_ends && i + 1 == listed.size())) continue;
    if (!has_ends || i > 0) throw scenario.error(kStages, fmt::format("leave stage {} without a layer", i));
    check_embedding_alone(scenario, s);
  }
}

std::vector<int> read_list(const Spec& scenario, int stages, int layers) {
  std::vector<int> listed = scenario.integers(kStages, 0, layers);
  if (static_cast<int>(listed.size()) != stages) {
    throw scenario.error(kStages,
                         fmt::format("must list the decoder layers of {} stages, not of {}", stages, listed.size()));
  }
  const int sum = std::accumulate(listed.begin(), listed.end(), 0);
  if (sum != layers) throw scenario.error(kStages, fmt::format("list {} decoder layers; there are {}", sum, layers));
  return listed;
}

bool is_layout(const std::string& text) { return text.find_first_of("E|") != std::string::npos; }

std::vector<int> read_layout(const Spec& scenario, const Setup& setup) {
  const Scenario& s = setup.scenario;
  try {
    const std::vector<std::string> stages = expanded_layout(scenario.text(kStages));
    const int mtp = s.training.mtp && s.whole_model ? setup.model.num_nextn_predict_layers : 0;
    const std::string complaint = complaint_of_layout(stages, decoder_layers(setup), mtp);
    if (!complaint.empty()) throw std::invalid_argument(complaint);
    if (static_cast<int>(stages.size()) != stage_count(s)) {
      throw std::invalid_argument(fmt::format("has {} stages; the pipeline has {}", stages.size(), stage_count(s)));
    }
    std::vector<int> decoders = decoders_of(stages);
    check_empty(scenario, decoders, setup);
    return decoders;
  } catch (const std::invalid_argument& error) {
    throw scenario.error(kStages, error.what());
  }
}

void check_balanced(const Spec& scenario, const Setup& setup) {
  const Scenario& s = setup.scenario;
  const std::vector<StageBlocks> units = units_of(training_blocks(s, setup.model), stage_count(s));
  if (stage_count(s) <= static_cast<int>(units.size())) {
    if (units.front().back().kind == BlockKind::embedding) check_embedding_alone(scenario, s);
    return;
  }
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
  if (scenario.is_list(kStages)) {
    std::vector<int> listed = read_list(scenario, stages, decoder_layers(setup));
    check_empty(scenario, listed, setup);
    return listed;
  }
  if (training && s.whole_model && scenario.has(kStages) && is_layout(scenario.text(kStages))) {
    return read_layout(scenario, setup);
  }
  if (scenario.has(kStages)) (void)scenario.choice(kStages, {training ? "balanced" : "even"});
  if (!training) return split_evenly(scenario, setup);
  check_balanced(scenario, setup);
  return {};
}

}  // namespace moeline
