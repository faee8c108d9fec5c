// Every number of a scenario and every fact of a machine moves some result; where it moves none, that is said.
#include <doctest/doctest.h>

#include <cmath>

#include "base/text_table.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/silent_facts.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/random_scenarios.hpp"

TEST_SUITE("properties/keys") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::optional<Run> run_of(const ScenarioKeys& keys, const std::vector<std::string>& assignments = {}) {
  try {
    return run_scenario(setup_of(yaml_of(keys), assignments));
  } catch (const SpecError&) {
    return std::nullopt;
  }
}

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' ? std::optional(value) : std::nullopt;
}

// A third more or less; of whole numbers at least one more, and where there must be twice or half as many, that.
std::vector<std::string> moved(const std::string& text) {
  const double value = *number_of(text);
  if (value == 0) return {"1", "0.1"};
  if (text.find('.') != std::string::npos) return {fmt::format("{}", value * 4 / 3), fmt::format("{}", value * 2 / 3)};
  return {fmt::format("{}", std::ceil(std::max(value + 1, value * 4 / 3))), fmt::format("{}", 2 * value),
          fmt::format("{}", std::ceil(value / 2) == value ? value - 1 : std::floor(value / 2))};
}

struct Effect {
  int asked = 0, refused = 0, moved = 0;
};

// "SETTING=VALUE", of a scenario that runs, with each of the values until one is legal.
void ask(const ScenarioKeys& keys, const Run& run, const std::string& key, const std::vector<std::string>& values,
         Effect& effect) {
  ++effect.asked;
  for (const std::string& value : values) {
    const std::optional<Run> other = run_of(keys, {fmt::format("{}={}", key, value)});
    if (!other) continue;
    if (!have_same_metrics(run, *other)) ++effect.moved;
    return;
  }
  ++effect.refused;
}

using Effects = std::map<std::string, Effect>;

void ask_all(const ScenarioKeys& keys, const Run& run, Effects& effects) {
  for (const auto& [key, value] : keys) {
    if (number_of(value)) ask(keys, run, key, moved(value), effects[key]);
  }
  if (run.has_given_slots()) return;
  for (const MachineFact& fact : list_facts(run.setup.machine.facts)) {
    const std::string key = "hardware." + fact.key;
    const double value = fact.value;
    const std::vector<std::string> others = {fmt::format("{}", value * 2 / 3), fmt::format("{}", std::ceil(value * 2))};
    ask(keys, run, key, value > 0 ? others : std::vector<std::string>{"1"}, effects[key]);
  }
}

std::string table_of(const Effects& effects) {
  TextTable table("lrrrr");
  table.row({"key", "asked", "refused", "moves", "moves nothing"});
  for (const auto& [key, effect] : effects) {
    table.row({key, std::to_string(effect.asked), std::to_string(effect.refused), std::to_string(effect.moved),
               std::to_string(effect.asked - effect.refused - effect.moved)});
  }
  return table.text();
}

// Half of the networks are described, so that their facts can matter; one step copies to the host and back, and one
// sends messages from rail to rail.
std::vector<ScenarioKeys> scenarios() {
  const std::uint64_t count = from_environment("MOELINE_SCENARIOS", kSanitized ? 4 : 40);
  ScenarioDraw draw(from_environment("MOELINE_SEED", 1));
  std::vector<ScenarioKeys> all = {{{"model", "qwen3-30b-a3b"},
                                    {"hardware", "h100"},
                                    {"schedule", "1f1b"},
                                    {"layers", "4"},
                                    {"parallelism.pp", "2"},
                                    {"parallelism.ep", "8"},
                                    {"parallelism.dp", "8"},
                                    {"training.operators", "megatron"},
                                    {"training.offload", "[expert_fc1, moe_act]"},
                                    {"workload.phase", "train"},
                                    {"workload.seq_len", "4096"},
                                    {"workload.global_batch_size", "32"}},
                                   {{"model", "deepseek-v3"},
                                    {"hardware", "h800"},
                                    {"hardware_overrides", "[leaf_nodes=2, oversubscription=4]"},
                                    {"schedule", "sequential"},
                                    {"parallelism.ep", "64"},
                                    {"comm.mode", "low_latency"},
                                    {"workload.phase", "decode"},
                                    {"workload.batch_size", "64"},
                                    {"workload.kv_len", "4096"}}};
  for (std::uint64_t i = 0; i < count; ++i) {
    ScenarioKeys keys = repaired(draw.draw());
    if (i % 2 == 1) keys["hardware_overrides"] = "[leaf_nodes=2, oversubscription=4]";
    all.push_back(keys);
  }
  return all;
}

}  // namespace

TEST_CASE("of a third more or less, every key and every fact moves a result of some scenario") {
  constexpr int kOften = 12;
  Effects effects;
  for (const ScenarioKeys& keys : scenarios()) {
    if (const std::optional<Run> run = run_of(keys)) ask_all(keys, *run, effects);
  }
  MESSAGE("\n", table_of(effects));
  for (const auto& [key, effect] : effects) {
    const bool needs_power = key == "hardware.idle_w" || key.ends_with("_w") || key == "hardware.boost_clock_mhz";
    if (effect.asked - effect.refused < kOften || needs_power || key == "seed") continue;
    CHECK_MESSAGE(effect.moved > 0, key, " moves nothing");
  }
}

TEST_CASE("a fact that is set and moves nothing is found, and one that moves something is not") {
  const ScenarioKeys keys = {{"model", "qwen3-30b-a3b"},   {"hardware", "h100"},      {"schedule", "sequential"},
                             {"parallelism.ep", "8"},      {"parallelism.tp", "1"},   {"workload.phase", "decode"},
                             {"workload.batch_size", "8"}, {"workload.kv_len", "500"}};
  const auto silent = [&](const std::string& facts, const char* phase = "decode") {
    ScenarioKeys with = keys;
    with["hardware_overrides"] = facts;
    with["workload.phase"] = phase;
    const Run run = run_scenario(setup_of(yaml_of(with)));
    return silent_facts(run, [&](const std::string& fact) { return setup_of(yaml_of(with), {"hardware." + fact}); });
  };
  CHECK(silent("[nic_GBps=25, oversubscription=4, hbm_GBps=3000]") ==
        std::vector<std::string>{"nic_GBps", "oversubscription"});  // nothing leaves the node
  CHECK(silent("[hbm_GBps=3000, sms=100, memory_gib=60]").empty());
}

TEST_CASE("simulate warns of a fact that is set and moves nothing, by its name") {
  const std::string decode = source("experiments/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const auto warned = [&](const std::string& fact) {
    const Outcome outcome = run_moeline({"simulate", decode, "--set", "hardware." + fact, "--format", "csv"});
    CHECK(outcome.exit_code == 0);
    return outcome.err.find("is set and moves nothing") != std::string::npos;
  };
  CHECK(warned("leaf_latency_us=1"));  // leaves are not described
  CHECK_FALSE(warned("nic_latency_us=5"));
}

}  // TEST_SUITE("properties/keys")
