// How fast a machine's host is, by steps of training that wait for it.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/validate/facts.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("validate/host_speed") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr const char* kScenario =
    "schema: 1\nmodel: moonlight-16b-a3b\nhardware: h100\nschedule: 1f1b\nparallelism: {tp: 2, pp: 1, ep: 8, dp: 4}\n"
    "workload: {phase: train, micro_batch_size: 1, seq_len: 4096, global_batch_size: 4}\nlayers: 4\n"
    "routing: {distribution: exact}\ntraining: {operators: megatron, recompute: none}\nlaunch: stream\n";

double ms_at(double host_speed) {
  return step_ms(
      run_scenario(read_setup(Spec::parse("s.yaml", kScenario), {fmt::format("hardware.host_speed={}", host_speed)})));
}

std::string steps_of(double measured_ms, const std::string& metric = "step_ms") {
  return fmt::format(
      "about: a step\ncommon: {{status: not fitted, quantity: length of a step, unit: ms, source: here, how_read: "
      "as it is}}\nfacts:\n  one: {{value: {:.3f}, setting: a, simulate: {{scenario: s.yaml, metric: {}}}}}\n",
      measured_ms, metric);
}

Outcome calibrate(const TemporaryFolder& folder, const std::string& steps, const std::vector<std::string>& more = {}) {
  folder.write("s.yaml", kScenario);
  std::vector<std::string> arguments = {"calibrate", folder.write("steps.yaml", steps), "-o", folder / "h.yaml"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_moeline(arguments);
}

void check_refused(const std::string& steps, const std::string& why, const std::vector<std::string>& more = {}) {
  const TemporaryFolder folder;
  const Outcome outcome = calibrate(folder, steps, more);
  CHECK(outcome.exit_code == 3);
  CHECK_MESSAGE(outcome.err.find(why) != std::string::npos, outcome.err);
  CHECK_FALSE(std::filesystem::exists(folder / "h.yaml"));
}

}  // namespace

TEST_CASE("the speed is found that made a step, and is all that changes in the profile") {
  const TemporaryFolder folder;
  const Outcome outcome = calibrate(folder, steps_of(ms_at(0.17)));
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.err);
  const HardwareProfile before = load_profile("h100"), after = load_profile(folder / "h.yaml");
  CHECK(after.facts.host_speed == doctest::Approx(0.17).epsilon(0.01));
  const std::vector<MachineFact> were = list_facts(before.facts), are = list_facts(after.facts);
  for (std::size_t i = 0; i < are.size(); ++i) {
    if (are[i].key != "host_speed") CHECK_MESSAGE(are[i].value == were[i].value, are[i].key);
  }
}

TEST_CASE("a step that is shorter than its kernels says nothing of a host") {
  check_refused(steps_of(ms_at(100) / 2), "no longer than its kernels take alone");
  check_refused(steps_of(1.01 * ms_at(100)), "waits for more than its host");
  check_refused(steps_of(1e3 * ms_at(0.1)), "longer than by the slowest host");
}

TEST_CASE("what is no step and another machine's is refused by name, and an option that would be ignored") {
  check_refused(steps_of(100, "tokens_per_s_per_gpu"), "must be step_ms");
  check_refused(steps_of(ms_at(0.2)), "steps of h100, not b200", {"--hardware", "b200"});
  const TemporaryFolder folder;
  CHECK(calibrate(folder, steps_of(100), {"--kernels", "a-1"}).err.find("--kernels") != std::string::npos);
}

TEST_CASE("the steps that hosts are calibrated by are the facts that are called fitted") {
  const Subject facts = read_subject(Spec::load(source("tests/published/training_on_rented_clusters.yaml")));
  for (const char* host : {"b300", "h100"}) {
    for (const Fact& step : read_subject(Spec::load(source(fmt::format("calib/data/hosts/{}.yaml", host)))).facts) {
      const auto same = [&](const Fact& fact) { return fact.key == step.key + ".mb1"; };
      const auto fact = std::find_if(facts.facts.begin(), facts.facts.end(), same);
      REQUIRE_MESSAGE(fact != facts.facts.end(), step.key);
      CHECK(fact->measured == step.measured);
      CHECK(fact->status == FactStatus::fitted);
    }
  }
}

}  // TEST_SUITE("validate/host_speed")
