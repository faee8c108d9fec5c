// What moeline writes, it reads: of every scenario that runs.
#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include "experiments/cli/output/scenario_json.hpp"
#include "experiments/cli/output/simulate_output.hpp"
#include "experiments/serve/traffic.hpp"
#include "tests/support/json.hpp"
#include "tests/support/random_scenarios.hpp"

TEST_SUITE("properties/round_trip") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Without simulate_ms, which is another every time, and warnings of keys that do not enter.
std::string result_of(const Setup& setup) {
  Run run = run_scenario(setup);
  run.simulate_ms = 0;
  run.warnings.clear();
  return to_json(run, {});
}

std::optional<std::string> round_trip(const ScenarioKeys& keys) {
  std::string result;
  try {
    result = result_of(setup_of(yaml_of(keys)));
  } catch (const SpecError&) {
    return std::nullopt;
  }
  try {
    const Setup again = read_setup(Spec::parse("again.yaml", text_of(parsed(result)["scenario"])));
    return result_of(again) == result ? "" : "given back, a scenario gives another result";
  } catch (const SpecError& error) {
    return "given back, a scenario is refused: " + kind_of(error.reason());
  }
}

std::string scenario_of(const Setup& setup) {
  Json json;
  json.open();
  setup.scenario.slot_costs ? add_pipeline_scenario(json, setup.scenario) : add_scenario(json, setup);
  return text_of(parsed(json.close().text())["scenario"]);
}

}  // namespace

TEST_CASE("the scenario that simulate prints, given back, gives the same result to the last digit") {
  none_in_any_scenario(round_trip, 200);
}

TEST_CASE("every scenario of a study, given back from another folder, is the same scenario") {
  int read = 0;
  for (const auto& folder : std::filesystem::directory_iterator(source("experiments/studies"))) {
    const std::filesystem::path file = folder.path() / "scenario.yaml";
    if (!std::filesystem::exists(file) || is_served(Spec::load(file))) continue;
    CAPTURE(file.string());
    const std::string written = scenario_of(first_of(load_candidates(file, {})));
    CHECK(scenario_of(read_setup(Spec::parse("elsewhere/again.yaml", written))) == written);
    ++read;
  }
  CHECK(read > 10);
}

TEST_CASE("facts of the machine that a scenario changes are in the file, or on the command line behind it") {
  const std::string scenario =
      "{schema: 1, model: qwen3-30b-a3b, hardware: h100, schedule: sequential, parallelism: {ep: 8}, layers: 1,"
      " workload: {phase: decode, batch_size: 8, kv_len: 100}, ";
  const Setup setup =
      read_setup(Spec::parse("s.yaml", scenario + "hardware_overrides: [nic_GBps=25, sms=100]}"), {"hardware.sms=120"});
  CHECK(setup.machine.facts.nic_GBps == 25);
  CHECK(setup.machine.facts.sms == 120);
  const TemporaryFolder folder;
  const std::string file = folder.write("s.yaml", scenario + "\nhardware_overrides: [nic_GBp=25]}");
  check_refused({"simulate", file}, file + ":2", "hardware_overrides is refused: --set: unknown key");
}

}  // TEST_SUITE("properties/round_trip")
