// Two ways to ask the same have the same answer.
#include <doctest/doctest.h>

#include "tests/support/random_scenarios.hpp"

TEST_SUITE("properties/two_ways") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Time span_of(const ScenarioKeys& keys) { return run_scenario(setup_of(yaml_of(keys))).metrics.span; }

// With one micro-batch nothing is left to order.
std::optional<std::string> another_pipeline(ScenarioKeys keys) {
  if (keys["workload.phase"] != "train" || keys.contains("samples")) return std::nullopt;
  keys["schedule"] = "1f1b";
  keys.erase("overlap");
  keys.erase("parallelism.virtual_pp");
  keys.erase("training.delay_weight_gradients");
  try {
    const Scenario asked = setup_of(yaml_of(keys)).scenario;
    const auto& work = std::get<TrainWorkload>(asked.workload);
    keys["workload.global_batch_size"] = std::to_string(work.global_batch_size / micro_batches(asked));
    const Time alternating = span_of(keys);
    keys["schedule"] = "gpipe";
    return span_of(keys) == alternating ? "" : "with one micro-batch, 1F1B and GPipe take different times";
  } catch (const SpecError&) {
    return std::nullopt;
  }
}

// What a key has where it is left out, said.
const std::vector<std::pair<const char*, const char*>> kSaid = {{"ranks", "auto"},
                                                                {"routing.distribution", "skewed"},
                                                                {"parallelism.pp", "1"},
                                                                {"parallelism.tp", "1"},
                                                                {"comm.neighbours", "measured"},
                                                                {"workload.query_len", "1"},
                                                                {"workload.micro_batch_size", "1"},
                                                                {"workload.cached_len", "0"}};

std::optional<std::string> another_default(const ScenarioKeys& keys) {
  try {
    const Time silent = span_of(keys);
    for (const auto& [key, value] : kSaid) {
      if (keys.contains(key)) continue;
      ScenarioKeys said = keys;
      said[key] = value;
      try {
        if (span_of(said) != silent) return fmt::format("{}: {} takes another time than without the key", key, value);
      } catch (const SpecError&) {
        continue;  // a key, or a word, of another phase
      }
    }
    return "";
  } catch (const SpecError&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("with one micro-batch 1F1B is GPipe") { none_in_any_scenario(another_pipeline, 300, 40); }

TEST_CASE("a default that is said is the default") { none_in_any_scenario(another_default, 60, 8); }

}  // TEST_SUITE("properties/two_ways")
