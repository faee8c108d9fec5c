// `schedule: auto` in every command that takes a scenario.
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("cli/auto_schedule") {

using namespace moeline::testing;

namespace {

const std::string kDecode =
    "schema: 1\n"
    "model: deepseek-v3\n"
    "hardware: h800\n"
    "schedule: auto\n"
    "parallelism: {ep: 128}\n"
    "workload: {phase: decode, batch_size: 192, kv_len: 4096}\n"
    "layers: 4\n";

struct Auto {
  TemporaryFolder folder;
  std::string file = folder.write("auto.yaml", kDecode);
  std::string named = folder.write("named.yaml", replaced(kDecode, "auto", "decode-two-batch"));
};

}  // namespace

TEST_CASE("auto's JSON is that of the schedule which ran, with the others' times beside it") {
  const Auto scenarios;
  rapidjson::Document chosen = in_json({"simulate", scenarios.file});
  const rapidjson::Document named = in_json({"simulate", scenarios.named});
  CHECK(chosen["schedule"] == "decode-two-batch");
  CHECK(chosen["scenario"]["schedule"] == "decode-two-batch");
  CHECK(chosen["metrics"]["step_ms"].GetDouble() == named["metrics"]["step_ms"].GetDouble());
  CHECK_FALSE(named.HasMember("schedules"));
  CHECK(run_moeline({"simulate", scenarios.file, "--format", "csv"}).out ==
        run_moeline({"simulate", scenarios.named, "--format", "csv"}).out);
  REQUIRE(chosen["schedules"].Size() == 4);
  const rapidjson::Value& other = chosen["schedules"][0];
  CHECK(other["schedule"] == "sequential");
  CHECK(other["step_ms"].GetDouble() > chosen["schedules"][1]["step_ms"].GetDouble());
  const double filled = 0.9 * 80 - 2.4;  // of an H800, less what CUDA and its libraries hold
  CHECK(other["fits_memory"].GetBool() == (other["memory_gib"].GetDouble() <= filled));
}

TEST_CASE("auto's JSON says why a schedule does not apply") {
  const Auto scenarios;
  const rapidjson::Document json = in_json({"simulate", scenarios.file, "--set", "comm.mode=normal"});
  CHECK(json["schedule"] == "sequential");
  const rapidjson::Value& refused = json["schedules"][1];
  CHECK(refused.MemberCount() == 2);
  CHECK(std::string(refused["refused"].GetString()).find("comm.mode 'normal'") == 0);
}

TEST_CASE("auto's table has the others above that of the schedule which ran") {
  const Auto scenarios;
  const std::string all = run_moeline({"simulate", scenarios.file}).out;
  const std::string named = run_moeline({"simulate", scenarios.named}).out;
  REQUIRE(all.ends_with(named));
  const std::string above = all.substr(0, all.size() - named.size());
  CHECK(above.starts_with("auto "));
  CHECK(above.find("\nsequential ") != std::string::npos);
  CHECK(above.find(" %") != std::string::npos);
}

TEST_CASE("explain, compare, traces and run folders take auto for the schedule that it chooses") {
  const Auto scenarios;
  CHECK(run_moeline({"explain", scenarios.file, "--format", "json"}).out ==
        run_moeline({"explain", scenarios.named, "--format", "json"}).out);
  const rapidjson::Document same = in_json({"compare", scenarios.file, scenarios.named});
  CHECK(same["worst_abs_error"].GetDouble() == 0);
  for (const std::string& file : {scenarios.file, scenarios.named}) {
    const std::string out = scenarios.folder / (file == scenarios.file ? "auto" : "named");
    CHECK(run_moeline({"simulate", file, "--trace", out + ".json", "-o", out}).exit_code == 0);
  }
  CHECK(content_of(scenarios.folder / "auto.json") == content_of(scenarios.folder / "named.json"));
  CHECK(content_of(scenarios.folder / "auto/traces/rank_0.json") ==
        content_of(scenarios.folder / "named/traces/rank_0.json"));
}

TEST_CASE("a study may leave the schedule open, beside those that it names") {
  const Auto scenarios;
  const std::string study = scenarios.folder.write("study.yaml",
                                                   "schema: 1\n"
                                                   "scenario: auto.yaml\n"
                                                   "axes: {schedule: [sequential, decode-two-batch, auto]}\n"
                                                   "metrics: [layer_us]\n");
  const std::string table = scenarios.folder / "t.sqlite";
  const rapidjson::Document json = in_json({"sweep", study, "-o", table});
  const auto layer_us = [&](rapidjson::SizeType point) {
    return json["points"][point]["metrics"]["layer_us"].GetDouble();
  };
  CHECK(layer_us(2) == layer_us(1));
  CHECK(layer_us(2) < layer_us(0));
}

TEST_CASE("a schedule that no scenario can have is refused with what there is, auto included") {
  const TemporaryFolder folder;
  const std::string file = folder.write("autp.yaml", replaced(kDecode, "auto", "autp"));
  check_refused({"simulate", file}, file + ":4: ", "unknown schedule 'autp'; did you mean 'auto'?");
}

}  // TEST_SUITE("cli/auto_schedule")
