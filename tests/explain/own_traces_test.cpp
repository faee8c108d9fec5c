// What holds a simulated step back, asked of the scenario and of its trace.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>

#include "tests/support/data.hpp"
#include "tests/support/json.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("explain/own_traces") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Gains = std::map<std::string, std::array<double, 3>>;

// Of classes of kernels and of kernels: what a tenth, half and all of their time would save. Phases of a scenario hold
// what stands for ranks that are not simulated, too.
Gains gains_of(const Arguments& arguments) {
  const rapidjson::Document json = json_of(arguments);
  Gains gains;
  for (const auto& each : json["sensitivities"].GetArray()) {
    const std::string what = each["what"].GetString();
    const bool of_kernels = what.starts_with("class:") || what.starts_with("kernel:");
    if (!of_kernels || !each.HasMember("gain_10") || each["gain_10"].IsNull()) continue;
    gains[what] = {each["gain_10"].GetDouble(), each["gain_50"].GetDouble(), each["gain_100"].GetDouble()};
  }
  return gains;
}

}  // namespace

TEST_CASE("explain says the same of a step of one rank and of its trace, within one point") {
  struct Asked {
    const char* scenario;
    const char* set;
  };
  constexpr const char* kDecode = "decode_deepseek_v3_h800_ep128/scenario.yaml";
  constexpr Asked kAll[] = {{kDecode, "schedule=decode-two-batch"},
                            {kDecode, "schedule=sequential"},
                            {"train_megatron/qwen3_30b_gb300.yaml", "workload.global_batch_size=128"}};
  for (const Asked& asked : kAll) {
    CAPTURE(asked.scenario);
    CAPTURE(asked.set);
    const TemporaryFolder folder;
    const std::string trace = folder / "trace.json";
    const std::string scenario = (source("experiments/studies") / asked.scenario).string();
    Arguments set = {"--set", asked.set};
    if (kSanitized && asked.scenario == kDecode) set.insert(set.end(), {"--set", "layers=4"});
    Arguments simulate = {"simulate", scenario, "--trace", trace, "--trace-level", "operator"};
    simulate.insert(simulate.end(), set.begin(), set.end());
    REQUIRE(run_moeline(simulate).exit_code == 0);
    Arguments explain = {"explain", scenario, "--format", "json"};
    explain.insert(explain.end(), set.begin(), set.end());
    const Gains of_scenario = gains_of(explain);
    const Gains of_trace = gains_of({"explain", trace, "--format", "json"});
    std::size_t compared = 0;
    for (const auto& each : of_scenario) {
      const std::string& what = each.first;
      const std::array<double, 3>& gains = each.second;
      const auto same = of_trace.find(what);
      if (same == of_trace.end()) continue;
      CAPTURE(what);
      ++compared;
      for (std::size_t i = 0; i < gains.size(); ++i) CHECK(std::abs(gains[i] - same->second[i]) < 0.01);
    }
    CHECK(compared >= 5);
  }
}

}  // TEST_SUITE("explain/own_traces")
