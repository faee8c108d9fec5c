// What `simulate --trace` wrote teaches nothing new.
#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("learn/own_traces") {

using namespace moeline::testing;

namespace {

constexpr const char* kDecode = R"(schema: 1
model: qwen3-30b-a3b
hardware: h200
kernels: sglang
schedule: sequential
parallelism: {tp: 2}
workload: {phase: decode, batch_size: 24, kv_len: 3000}
)";
constexpr const char* kTwoBatch = R"(schema: 1
model: deepseek-v3
hardware: h800
kernels: deepseek-2025-02
schedule: decode-two-batch
parallelism: {ep: 64}
workload: {phase: decode, batch_size: 64, kv_len: 4096}
)";
constexpr const char* kPrefill = R"(schema: 1
model: llama-3.1-405b
hardware: b200
schedule: sequential
parallelism: {tp: 8}
workload: {phase: prefill, tokens: 4096, prompt_len: 2048}
)";

struct Learnt {
  TemporaryFolder folder;
  std::string scenario, trace, out;
  rapidjson::Document report;

  explicit Learnt(const std::string& text) {
    scenario = folder.write("s.yaml", text);
    trace = folder.path() / "t.json";
    out = folder.path() / "out";
    REQUIRE(run_moeline({"simulate", scenario, "--trace", trace}).exit_code == 0);
    report = in_json({"learn", trace, "-o", out});
  }
};

}  // namespace

TEST_CASE("its scenario is given back, every kernel finds its operator, and factors are 1") {
  for (const char* text : {kDecode, kTwoBatch, kPrefill}) {
    CAPTURE(text);
    const Learnt learnt(text);
    CHECK(learnt.report["assigned"].GetDouble() == doctest::Approx(1));
    CHECK(learnt.report["unassigned"].Empty());
    const auto& step = learnt.report["step_us"];
    CHECK(step["before"].GetDouble() == doctest::Approx(step["measured"].GetDouble()).epsilon(1e-3));
    CHECK(step["after"].GetDouble() == doctest::Approx(step["measured"].GetDouble()).epsilon(2e-3));
    for (const auto& op : learnt.report["operators"].GetArray()) {
      CAPTURE(op["operator"].GetString());
      CHECK(op["factor"].GetDouble() == doctest::Approx(1).epsilon(0.01));
    }
    for (const auto& setting : learnt.report["settings"].GetArray()) {
      CHECK(std::string(setting["how"].GetString()) == "metadata");
    }
  }
}

TEST_CASE("what was learnt is simulated, with other settings too, and says what it rests on") {
  const Learnt learnt(kDecode);
  const std::string file = learnt.out + "/scenario.yaml";
  const double before = in_json({"simulate", learnt.scenario})["metrics"]["step_ms"].GetDouble();
  CHECK(in_json({"simulate", file})["metrics"]["step_ms"].GetDouble() == doctest::Approx(before).epsilon(2e-3));
  const auto more = in_json({"simulate", file, "--set", "workload.batch_size=40"});
  const auto same = in_json({"simulate", learnt.scenario, "--set", "workload.batch_size=40"});
  CHECK(more["metrics"]["step_ms"].GetDouble() ==
        doctest::Approx(same["metrics"]["step_ms"].GetDouble()).epsilon(5e-3));
  bool learnt_price = false;
  for (const auto& use : more["provenance"].GetArray()) {
    learnt_price = learnt_price || std::string(use["provenance"].GetString()) == "learnt";
  }
  CHECK(learnt_price);
}

TEST_CASE("a folder that is there already is kept, and a refusal writes nothing") {
  const Learnt learnt(kDecode);
  check_wrong_usage({"learn", learnt.trace, "-o", learnt.out}, "has a machine.yaml already");
  CHECK(run_moeline({"learn", learnt.trace, "-o", learnt.out, "--force"}).exit_code == 0);
  const std::string other = learnt.folder.path() / "other";
  check_refused({"learn", learnt.trace, "--model", "no-such-model", "-o", other}, "", "no-such-model");
  CHECK_FALSE(std::filesystem::exists(other));
}

}  // TEST_SUITE("learn/own_traces")
