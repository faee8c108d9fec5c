#include "schedules/pipeline/pipeline_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/time.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "schedules/pipeline/stages.hpp"
#include "schedules/scenario_parts.hpp"

namespace moeline {
namespace {

constexpr int kMostPipelineRanks = 1 << 12;
constexpr int kMostChunks = 1 << 10;
constexpr long long kMostPasses = 1 << 20;  // of a micro-batch through a stage
constexpr double kShortestMs = 1e-3;
constexpr double kLongestMs = 1e6;

constexpr std::string_view kInterleaved = "interleaved-1f1b";

bool overlaps(const std::string& schedule) { return schedule.starts_with("dualpipe"); }
bool splits_backward(const std::string& schedule) { return overlaps(schedule) || schedule == "zb1p"; }

// Empty where it is met.
std::string demand_on_micro_batches(const std::string& schedule, int pp, int count) {
  if (schedule == kInterleaved && count % pp != 0) return fmt::format("a multiple of pp = {}", pp);
  if (schedule == "zb1p" && count < pp) return fmt::format("at least pp = {}", pp);
  if (overlaps(schedule) && count < 2 * pp) return fmt::format("at least 2 x pp = {}", 2 * pp);
  if (schedule == "dualpipe" && count % 2 != 0) return "an even number, half of it for each direction";
  return "";
}

void check_micro_batches(const Spec& workload, const Scenario& s) {
  const char* key = "global_batch_size";
  if (!workload.has(key)) throw workload.error(key, "is needed: a whole pipeline runs a whole step");
  const long long at_once = static_cast<long long>(s.parallelism.dp) * s.workload.micro_batch_size;
  if (s.workload.global_batch_size % at_once != 0) {
    throw workload.error(key, fmt::format("must be a multiple of dp x micro_batch_size = {}: {} is not", at_once,
                                          s.workload.global_batch_size));
  }
  const int count = micro_batches(s);
  const std::string demand = demand_on_micro_batches(s.schedule, s.parallelism.pp, count);
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
  const int chunks = s.schedule == "dualpipev" ? 2 : s.parallelism.virtual_pp;
  const long long passes = static_cast<long long>(micro_batches(s)) * s.parallelism.pp * chunks;
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

double read_cost(const Spec& costs, const char* slot, bool needed) {
  return needed || costs.has(slot) ? costs.number(slot, kShortestMs, kLongestMs) : 0;
}

// All that are given are checked, so that one file serves every schedule.
SlotCosts read_costs(const Spec& costs, const std::string& schedule) {
  costs.expect({"F", "B", "W", "F&B"});
  SlotCosts c;
  c.f = read_cost(costs, "F", true);
  c.b = read_cost(costs, "B", true);
  c.w = read_cost(costs, "W", splits_backward(schedule));
  c.f_and_b = read_cost(costs, "F&B", overlaps(schedule));
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

void read_pipeline_keys(const Spec& spec, const std::string& schedule, Parallelism& p) {
  (void)spec.integer("pp", 1, kMostPipelineRanks);
  if (schedule == kInterleaved) {
    p.virtual_pp = spec.integer("virtual_pp", 2, kMostChunks);
  } else if (spec.has("virtual_pp")) {
    throw spec.error("virtual_pp", fmt::format("belongs to {}, not to {}", kInterleaved, schedule));
  }
  if (schedule == "dualpipe" && p.pp % 2 != 0) {
    throw spec.error("pp",
                     fmt::format("must be even for dualpipe, whose directions meet in the middle: {} is odd", p.pp));
  }
}

Parallelism read_pipeline_parallelism(const Spec& spec, const std::string& schedule) {
  spec.expect({"tp", "pp", "virtual_pp", "ep", "dp"});
  Parallelism p = read_world(spec, spec.integer_or("ep", 1, kMostRanks, 1));
  read_pipeline_keys(spec, schedule, p);
  return p;
}

SlotCosts read_slot_costs(const Spec& scenario, const std::string& schedule) {
  const char* key = "slot_costs_ms";
  if (!is_pipeline(schedule)) {
    throw scenario.error(key, fmt::format("belongs to schedules of whole pipelines, and {} is none", schedule));
  }
  SlotCosts costs = read_costs(scenario.map(key), schedule);
  if (!splits_backward(schedule)) costs.w = 0;
  if (!overlaps(schedule)) costs.f_and_b = 0;
  return costs;
}

void check_pipeline(const Spec& spec, const Scenario& scenario) {
  check_micro_batches(spec.map("workload"), scenario);
  check_size(spec, scenario);
}

}  // namespace moeline
