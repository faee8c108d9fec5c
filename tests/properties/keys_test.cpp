// Every number of a scenario and every fact of a machine moves some result; where it moves none, that is said.
#include <doctest/doctest.h>

#include "base/text_table.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/silent_settings.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/random_scenarios.hpp"

TEST_SUITE("properties/keys") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Effect {
  int asked = 0, refused = 0, moved = 0;
};

// "SETTING=VALUE", of a scenario that runs, with each of the values until one is legal.
void ask(const ScenarioKeys& keys, const Run& run, const std::string& key, const std::vector<std::string>& values,
         Effect& effect) {
  ++effect.asked;
  for (const std::string& value : values) {
    const std::optional<Run> other = run_if_legal(keys, {fmt::format("{}={}", key, value)});
    if (!other) continue;
    if (!have_same_metrics(run, *other)) ++effect.moved;
    return;
  }
  ++effect.refused;
}

using Effects = std::map<std::string, Effect>;

void ask_all(const ScenarioKeys& keys, const Run& run, Effects& effects) {
  for (const auto& [key, value] : keys) {
    const std::vector<std::string> others = other_values(value);
    if (!others.empty()) ask(keys, run, key, others, effects[key]);
  }
  if (run.has_given_slots()) return;
  for (const MachineFact& fact : list_facts(run.setup.machine.facts)) {
    const std::string key = "hardware." + fact.key;
    ask(keys, run, key, fact.key == "nic" ? std::vector<std::string>{"efa"} : other_values(fact.text), effects[key]);
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

// Half of the networks are described, so that their facts can matter; one step copies to the host and back, one sends
// messages from rail to rail, one by DeepEP's second version, and of one pipeline that overlaps two passes the slots
// are given.
std::vector<ScenarioKeys> scenarios() {
  const std::uint64_t count = from_environment("MOELINE_SCENARIOS", kSanitized ? 4 : 30);
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
                                   {{"model", "qwen3-30b-a3b"},
                                    {"hardware", "h100"},
                                    {"schedule", "1f1b"},
                                    {"layers", "2"},
                                    {"comm.mode", "all_to_all"},
                                    {"parallelism.pp", "1"},
                                    {"parallelism.ep", "16"},
                                    {"parallelism.dp", "16"},
                                    {"training.operators", "megatron"},
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
                                    {"workload.kv_len", "4096"}},
                                   {{"model", "deepseek-v3"},
                                    {"hardware", "h100"},
                                    {"schedule", "sequential"},
                                    {"parallelism.ep", "16"},
                                    {"comm.mode", "deepep_v2"},
                                    {"workload.phase", "prefill"},
                                    {"workload.tokens", "2048"},
                                    {"workload.prompt_len", "2048"}},
                                   {{"schedule", "dualpipe"},
                                    {"parallelism.pp", "4"},
                                    {"workload.phase", "train"},
                                    {"workload.seq_len", "1"},
                                    {"workload.global_batch_size", "16"},
                                    {"slot_costs_ms.F", "1"},
                                    {"slot_costs_ms.B", "2"},
                                    {"slot_costs_ms.W", "0.5"},
                                    {"slot_costs_ms.F&B", "2.5"}}};
  for (std::uint64_t i = 0; i < count; ++i) {
    ScenarioKeys keys = repaired(draw.draw());
    if (i % 2 == 1) keys["hardware_overrides"] = "[leaf_nodes=2, oversubscription=4]";
    all.push_back(keys);
  }
  return all;
}

}  // namespace

TEST_CASE("of a third more or less, every key and every fact moves a result of some scenario") {
  constexpr int kOften = 10;
  Effects effects;
  for (const ScenarioKeys& keys : scenarios()) {
    if (const std::optional<Run> run = run_if_legal(keys)) ask_all(keys, *run, effects);
  }
  MESSAGE("\n", table_of(effects));
  for (const auto& each : effects) {
    const std::string& key = each.first;
    const Effect& effect = each.second;
    const bool is_limit = key == "hardware.memory_gib" || key == "hardware.power_cap_w";  // met or not
    if (effect.asked - effect.refused < kOften || is_limit || key == "seed") continue;
    CHECK_MESSAGE(effect.moved > 0, key, " moves nothing");
  }
}

TEST_CASE("what is set and moves nothing is found, and what moves something is not") {
  const ScenarioKeys keys = {{"model", "qwen3-30b-a3b"},   {"hardware", "h100"},      {"schedule", "sequential"},
                             {"parallelism.ep", "8"},      {"parallelism.tp", "1"},   {"workload.phase", "decode"},
                             {"workload.batch_size", "8"}, {"workload.kv_len", "500"}};
  const auto silent = [&](const std::vector<std::string>& assignments) {
    const Run run = run_scenario(setup_of(yaml_of(keys), assignments));
    return silent_settings(run, assignments, [&](const std::string& other) {
      std::vector<std::string> with = assignments;
      with.push_back(other);
      return setup_of(yaml_of(keys), with);
    });
  };
  CHECK(silent({"hardware.nic_GBps=25", "hardware.oversubscription=4", "hardware.hbm_GBps=3000"}) ==
        std::vector<std::string>{"hardware.nic_GBps", "hardware.oversubscription"});  // nothing leaves the node
  CHECK(silent({"hardware.sms=100", "hardware.memory_gib=60", "workload.kv_len=600", "schedule=sequential"}).empty());
  CHECK(silent({"layers=4", "workload.query_len=2", "workload.mtp_acceptance=0.7"}) ==
        std::vector<std::string>{"workload.mtp_acceptance"});  // some layers make no tokens
}

TEST_CASE("simulate warns of what is set and moves nothing, by its name") {
  const std::string decode = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const auto warned = [&](const std::string& fact) {
    const Outcome outcome = run_moeline({"simulate", decode, "--set", "hardware." + fact, "--format", "csv"});
    CHECK(outcome.exit_code == 0);
    return outcome.err.find("is set and moves nothing") != std::string::npos;
  };
  CHECK(warned("leaf_latency_us=1"));  // leaves are not described
  CHECK_FALSE(warned("nic_latency_us=5"));
}

}  // TEST_SUITE("properties/keys")
