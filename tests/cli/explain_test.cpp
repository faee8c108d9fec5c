// moeline explain: why a scenario or a trace takes as long as it does.
#include <doctest/doctest.h>

#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

rapidjson::Document explained(const std::string& input, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"explain", input, "--format", "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_moeline(arguments);
  REQUIRE(outcome.exit_code == 0);
  return parsed(outcome.out);
}

double sum(const rapidjson::Value& list) {
  double us = 0;
  for (const auto& each : list.GetArray()) us += each["us"].GetDouble();
  return us;
}

void check_adds_up(const rapidjson::Document& result) {
  const double span = result["span_us"].GetDouble();
  CHECK(sum(result["blame"]) == doctest::Approx(span).epsilon(1e-6));
  CHECK(sum(result["critical_path"]) == doctest::Approx(span).epsilon(1e-6));
  CHECK(result["bound_us"].GetDouble() <= span * (1 + 1e-9));
  double at = 0;
  for (const auto& step : result["critical_path"].GetArray()) {
    REQUIRE(step["start_us"].GetDouble() == doctest::Approx(at).epsilon(1e-6));
    at += step["us"].GetDouble();
  }
}

double blamed(const rapidjson::Document& result, const std::string& part) {
  double us = 0;
  for (const auto& blame : result["blame"].GetArray()) {
    if (std::string(blame["what"].GetString()).find(part) != std::string::npos) us += blame["us"].GetDouble();
  }
  return us;
}

}  // namespace

TEST_CASE("the blame of every shipped scenario, and its path, add up to its span, and no bound is above it") {
  for (const char* name : {"decode_deepseek_v3_h800_ep128", "prefill_deepseek_v3_h800_ep32",
                           "skewed_decode_deepseek_v3_h800_ep144", "train_chunk_deepseek_v3_h800"}) {
    CAPTURE(name);
    check_adds_up(
        explained(source(std::string("experiments/") + name + "/scenario.yaml").string(), {"--set", "layers=4"}));
  }
  check_adds_up(
      explained(source("experiments/train_deepseek_v3_2048_h800/scenario.yaml").string(), {"--set", "level=phase"}));
}

TEST_CASE("with a NIC so narrow that nothing hides it, dispatch and combine are blamed") {
  const std::string decode = source("experiments/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const rapidjson::Document usual = explained(decode, {"--set", "layers=8"});
  const rapidjson::Document narrow = explained(decode, {"--set", "layers=8", "--set", "hardware.nic_GBps=5"});
  const auto transfers = [](const rapidjson::Document& result) {
    return (blamed(result, "dispatch in dispatch") + blamed(result, "combine in combine")) /
           result["span_us"].GetDouble();
  };
  CHECK(transfers(usual) < 0.3);
  CHECK(transfers(narrow) > 0.7);
}

TEST_CASE("of the training trace everything has a reason, and its one exposed transfer is on the path") {
  if (!present(training_trace())) return;
  const rapidjson::Document result = explained(training_trace().string());
  check_adds_up(result);
  CHECK(blamed(result, "combine in dispatch(B): running") == doctest::Approx(6492));
}

TEST_CASE("what is neither scenario nor trace is refused, and so are options of the one with the other") {
  const TemporaryFolder folder;
  const std::string note = folder.write("note.json", "hello");
  const std::string bad = folder.write("bad.yaml", "schema: 1\nmodle: x\n");
  check_refused({"explain", note}, note, "");
  check_refused({"explain", bad}, bad + ":2", "modle");
  CHECK(run_moeline({"explain", bad, "--from", "100"}).exit_code == 2);
  CHECK(run_moeline({"explain", note, "--set", "layers=2"}).exit_code == 2);
}
