// More of the machine is never slower, and more work is never faster.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "schedules/scenario/stage_blocks.hpp"
#include "tests/support/random_scenarios.hpp"

TEST_SUITE("properties/monotone") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// What chance draws and what power leaves of the clock are other questions: more SMs draw more power.
Setup without_chance(ScenarioKeys keys, const std::vector<std::string>& more = {}) {
  for (const char* key : {"samples", "seed", "jitter", "speed_spread"}) keys.erase(key);
  if (!keys.contains("slot_costs_ms.F")) {
    keys["clock"] = "burst";
    keys["speed_spread"] = "0";  // which stage of a pipeline has the slow GPU
  }
  return setup_of(yaml_of(keys), more);
}

Run run_of(const ScenarioKeys& keys, const std::vector<std::string>& more = {}) {
  return run_scenario(without_chance(keys, more));
}
double span_us(const Run& run) { return to_us(run.metrics.span); }

// On average over what chance draws of every rank.
double mean_span_us(const ScenarioKeys& keys) {
  constexpr int kSeeds = 8;
  Setup setup = without_chance(keys);
  double sum = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    draw(setup, seed);
    sum += span_us(run_scenario(setup));
  }
  return sum / kSeeds;
}

constexpr double kMost = 0.005;
// Where streams meet, what is quicker meets other neighbours.
constexpr double kMostOfOverlap = 0.01;
// Corrections follow what was measured, to a few per cent.
constexpr double kMostOfCorrection = 0.04;

using FactKeys = std::vector<std::pair<const char*, double MachineFacts::*>>;

// A fact of the machine, or several, of which there is so much more.
struct Resource {
  const char* name;
  double more;
  FactKeys facts;
};

const FactKeys kPeaks = {{"bf16_tflops", &MachineFacts::bf16_tflops},
                         {"fp8_tflops", &MachineFacts::fp8_tflops},
                         {"fp4_tflops", &MachineFacts::fp4_tflops}};

// An SM brings its share of the tensor cores.
FactKeys sms_and_peaks() {
  FactKeys facts = kPeaks;
  facts.emplace_back("sms", &MachineFacts::sms);
  return facts;
}

const std::vector<Resource> kResources = {{"NIC", 1.5, {{"nic_GBps", &MachineFacts::nic_GBps}}},
                                          {"NVLink", 1.5, {{"nvlink_GBps", &MachineFacts::nvlink_GBps}}},
                                          {"HBM", 1.3, {{"hbm_GBps", &MachineFacts::hbm_GBps}}},
                                          {"FLOPs", 1.3, kPeaks},
                                          {"SMs", 1.25, sms_and_peaks()}};

std::vector<std::string> with_more(const Resource& resource, const MachineFacts& facts) {
  std::vector<std::string> overrides;
  const double factor = std::ceil(resource.more * facts.sms) / facts.sms;  // of whole SMs
  for (const auto& [key, fact] : resource.facts) {
    overrides.push_back(fmt::format("hardware.{}={}", key, std::round(1e6 * factor * facts.*fact) / 1e6));
  }
  return overrides;
}

// The decoder layers of each stage of a step of training. Balanced stages are shared out by what blocks cost on the
// machine: on another one they are other stages, which may idle more.
std::string stages_of(const Run& run) {
  std::vector<long> layers;
  for (const StageBlocks& blocks : run.step()->layout.stages) {
    const auto mtp =
        std::find_if(blocks.begin(), blocks.end(), [](const Block& b) { return b.kind == BlockKind::mtp; });
    layers.push_back(std::count_if(blocks.begin(), mtp, [](const Block& b) { return is_layer(b.kind); }));
  }
  return fmt::format("[{}]", fmt::join(layers, ", "));
}

std::optional<std::string> slower_with_more(ScenarioKeys keys) {
  try {
    const Run run = run_of(keys);
    if (run.has_given_slots()) return std::nullopt;
    if (run.step() != nullptr && stage_count(run.setup.scenario) > 1) keys["stages"] = stages_of(run);
    const bool by_waves = run.setup.scenario.comm.releases();  // combine starts with the first of the experts' waves
    for (const Resource& resource : kResources) {
      if (by_waves && resource.name == std::string("SMs")) continue;
      const Run after = run_of(keys, with_more(resource, run.setup.machine.facts));
      const bool overlaps = std::max(run.metrics.overlap_fraction(), after.metrics.overlap_fraction()) > 0;
      if (span_us(after) > (1 + (overlaps ? kMostOfOverlap : kMost)) * span_us(run))
        return fmt::format("with more {} it is slower", resource.name);
    }
    return "";
  } catch (const SpecError&) {
    return std::nullopt;
  }
}

// Half as much again: libraries choose tiles by the work, by rules that make a few rows more cheaper at times. DeepGEMM
// takes tiles of 256 rows for experts of 256 on average, of which half then have two, and tiles of 128 for 257.
constexpr double kMoreWork = 1.5;
const std::vector<const char*> kWork = {"workload.batch_size", "workload.kv_len",  "workload.tokens",
                                        "workload.cached_len", "workload.seq_len", "layers"};

// More of it is less to do: of a prompt's round on a pipeline more tokens of a step make fewer steps, and more cached
// ones leave fewer; of attention in chunks (Llama-4) a longer cache may have just begun its last one; and beyond as
// many keys as a query chooses other kernels run, by the roofline on H800. The rows of a given graph are those of all
// micro-batches on a pipeline, of which more requests make more.
bool may_be_less(const Run& run, const std::string& key) {
  const bool of_round = key == "workload.tokens" || key == "workload.cached_len";
  const bool in_chunks = run.setup.model.name.starts_with("llama-4");
  const std::vector<Layer>& layers = run.setup.model.layers;
  const bool chooses =
      std::any_of(layers.begin(), layers.end(), [](const Layer& l) { return l.attention.selection.top_k > 0; });
  const DecodeWorkload* decode = decode_of(run.setup.scenario.workload);
  const bool shares_graph = key == "workload.batch_size" && decode != nullptr && decode->graph_batch > 0;
  return ((of_round || shares_graph) && is_staged(run.setup.scenario)) ||
         (key == "workload.kv_len" && (in_chunks || chooses));
}

std::optional<std::string> faster_with_more_work(const ScenarioKeys& keys) {
  try {
    const Run run = run_of(keys);
    for (const char* key : kWork) {
      const auto found = keys.find(key);
      if (found == keys.end()) continue;
      if (may_be_less(run, key)) continue;
      ScenarioKeys with = keys;
      if (run.step() != nullptr && key != std::string("layers")) with["stages"] = stages_of(run);
      with[key] = std::to_string(static_cast<int>(std::ceil(kMoreWork * std::stoi(found->second))));
      try {
        const bool is_faster = span_us(run_of(with)) < (1 - kMostOfCorrection) * span_us(run);
        if (is_faster && mean_span_us(with) < (1 - kMostOfCorrection) * mean_span_us(keys))
          return fmt::format("more {} is faster", key);
      } catch (const SpecError&) {
        continue;  // more than the model has, or what the ranks do not divide
      }
    }
    return "";
  } catch (const SpecError&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("more links, HBM, FLOPs or SMs are never slower by more than half a percent, and of what overlaps by 1 %") {
  none_in_any_scenario(slower_with_more, 100, 8);
}

TEST_CASE("half as much work again is never faster by more than the corrections of its kernels") {
  none_in_any_scenario(faster_with_more_work, 100, 8);
}

}  // TEST_SUITE("properties/monotone")
