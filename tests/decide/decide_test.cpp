// moeline decide, as its user calls it.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "tests/support/json.hpp"

TEST_SUITE("decide/decide") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kDecode =
    "schema: 1\nmodel: deepseek-v3\nhardware: h200\nkernels: sglang\nschedule: sequential\nparallelism: {tp: 8}\n"
    "workload: {phase: decode, batch_size: 64, kv_len: 4096}\nlayers: 4\n";
const std::string kServe =
    "schema: 1\nmodel: qwen3-30b-a3b\nhardware: h200\nkernels: sglang\nschedule: sequential\nparallelism: {tp: 1, ep: "
    "1}\n"
    "workload: {phase: serve, concurrency: 4, requests: 20, input_len: 256, output_len: 32}\n";
const Arguments kSplits = {"--option", "parallelism={tp: 8}", "--option", "parallelism={tp: 8, ep: 8}"};

rapidjson::Document decided(const std::string& scenario, const Arguments& more) {
  const TemporaryFolder folder;
  Arguments arguments = {"decide", folder.write("s.yaml", scenario)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return in_json(arguments);
}

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

double sum_of_parts(const rapidjson::Value& why) {
  double sum = 0;
  for (const auto& part : why["parts"].GetArray()) sum += part["us"].GetDouble();
  return sum;
}

const rapidjson::Value& point_at(const rapidjson::Document& decision, double at) {
  for (const auto& point : decision["points"].GetArray()) {
    if (point["at"].GetDouble() == at) return point;
  }
  FAIL("no point at " << at);
  return decision["points"][0];
}

double difference(const rapidjson::Document& d, const rapidjson::Value& why) {
  const rapidjson::Value& point = point_at(d, why["at"].GetDouble());
  double from = NAN, to = NAN;
  for (rapidjson::SizeType i = 0; i < d["options"].Size(); ++i) {
    const std::string name = d["options"][i]["name"].GetString();
    if (name == why["from"].GetString()) from = point["values"][i].GetDouble();
    if (name == why["to"].GetString()) to = point["values"][i].GetDouble();
  }
  return to - from;
}

}  // namespace

TEST_CASE("the value of each setting is what simulate says of it") {
  const auto d = decided(kDecode, with(kSplits, {"--along", "workload.batch_size=[8, 64]", "--by", "step_ms"}));
  const TemporaryFolder folder;
  const std::string scenario = folder.write("s.yaml", kDecode);
  for (const auto& point : d["points"].GetArray()) {
    if (!point["asked"].GetBool()) continue;
    const std::string batch = "workload.batch_size=" + std::to_string(point["at"].GetInt());
    const auto run = in_json({"simulate", scenario, "--set", "parallelism={tp: 8, ep: 8}", "--set", batch});
    CHECK(point["values"][1].GetDouble() == doctest::Approx(run["metrics"]["step_ms"].GetDouble()));
  }
}

TEST_CASE("the parts of every reason sum to the difference of the metric") {
  const auto d = decided(kDecode, with(kSplits, {"--along", "workload.batch_size=8..256", "--by", "step_ms"}));
  REQUIRE(d["why"].Size() >= 2);
  for (const auto& why : d["why"].GetArray()) {
    CHECK(sum_of_parts(why) == doctest::Approx(1e3 * difference(d, why)).epsilon(1e-4));
  }
}

TEST_CASE("of a rate the parts sum to the difference of what a token takes") {
  const auto d = decided(kServe, {"--option", "precision.kv_cache=fp8", "--along", "workload.concurrency=[2, 4]"});
  CHECK(std::string(d["by"].GetString()) == "output_tokens_per_s_per_gpu");
  for (const auto& why : d["why"].GetArray()) {
    const rapidjson::Value& point = point_at(d, why["at"].GetDouble());
    const double a = 1e6 / point["values"][0].GetDouble(), b = 1e6 / point["values"][1].GetDouble();
    CHECK(std::abs(sum_of_parts(why)) == doctest::Approx(std::abs(a - b)).epsilon(1e-3));
  }
}

TEST_CASE("of a metric that does not follow from the time of a step the parts are those of the step") {
  const auto d = decided(kDecode, with(kSplits, {"--by", "exposed_comm_us"}));
  CHECK(std::string(d["parts_are"].GetString()) == "us of the step");
  CHECK_FALSE(d["margin"][0]["sure"].GetBool());  // nobody published pairs of it
}

TEST_CASE("parts of models and chunks of training are compared by what a token takes") {
  const auto d = decided(replaced(kDecode, "batch_size: 64", "batch_size: 32"),
                         {"--option", "parallelism={tp: 8}", "--option", "parallelism={ep: 8}"});
  CHECK(std::string(d["by"].GetString()) == "gpu_us_per_token");
  CHECK(std::string(d["points"][0]["winner"].GetString()) == "parallelism={ep: 8}");  // with eight times the requests
}

TEST_CASE("an axis that does not apply to one of the settings leaves it as it is") {
  const auto d = decided(kDecode, {"--option", "workload.query_len=1", "--option", "workload.query_len=2", "--by",
                                   "tpot_ms", "--set", "layers=all", "--along", "workload.mtp_acceptance=[0.1, 0.9]"});
  CHECK(d["points"][0]["values"][0].GetDouble() == d["points"][1]["values"][0].GetDouble());
  CHECK(d["points"][0]["values"][1].GetDouble() > d["points"][1]["values"][1].GetDouble());
}

TEST_CASE("of equal settings every draw is a tie, and a slower machine loses in each") {
  const Arguments draws = {"--samples", "4", "--by", "step_ms"};
  const auto alike = decided(kDecode, with({"--option", "seed=1"}, draws));
  CHECK(alike["points"][0]["tie"].GetBool());
  const auto slower = decided(kDecode, with({"--option", "hardware.nvlink_GBps=225"}, draws));
  const rapidjson::Value& band = slower["why"][0]["band"];
  CHECK(band["p5"].GetDouble() > 1);
  // What both draw alike falls away: the band is narrower than that of either.
  CHECK(band["p95"].GetDouble() / band["p5"].GetDouble() - 1 < 0.01);
}

TEST_CASE("two axes have a course for each value of the second") {
  const auto d = decided(kDecode, with(kSplits, {"--along", "workload.batch_size=[8, 16]", "--along",
                                                 "workload.kv_len=[1024, 4096]", "--by", "step_ms"}));
  std::set<std::string> beside;
  for (const auto& point : d["points"].GetArray()) beside.insert(point["beside"].GetString());
  CHECK(beside == std::set<std::string>{"1024", "4096"});
}

TEST_CASE("a limit keeps a setting that breaks it from winning, and says by how much") {
  const auto free = decided(kDecode, with(kSplits, {"--by", "step_ms"}));
  const double least = std::min(free["points"][0]["values"][0].GetDouble(), free["points"][0]["values"][1].GetDouble());
  const auto d =
      decided(kDecode, with(kSplits, {"--by", "step_ms", "--where", "step_ms <= " + std::to_string(least / 2)}));
  CHECK(d["points"][0]["winner"].IsNull());
  CHECK(std::string(d["points"][0]["not_winning"][0].GetString()).find("is asked") != std::string::npos);
}

TEST_CASE("requests of all GPUs are the same load for settings that split them differently") {
  const TemporaryFolder folder;
  const std::string scenario = folder.write("s.yaml", replaced(kDecode, "batch_size: 64", "concurrency: 64"));
  const auto step_ms = [&](const Arguments& changes) {
    Arguments arguments = {"simulate", scenario};
    for (const std::string& change : changes) arguments.insert(arguments.end(), {"--set", change});
    return in_json(arguments)["metrics"]["step_ms"].GetDouble();
  };
  const std::string one = "workload={phase: decode, batch_size: 64, kv_len: 4096}";
  const std::string eight = "workload={phase: decode, batch_size: 8, kv_len: 4096}";
  CHECK(step_ms({}) == step_ms({one}));
  CHECK(step_ms({"parallelism={ep: 8}"}) == step_ms({"parallelism={ep: 8}", eight}));
  check_refused({"simulate", scenario, "--set", "parallelism={ep: 8}", "--set", "workload.concurrency=65"}, "",
                "workload.concurrency must be a multiple of the 8 attention groups: 65 is not");
  check_refused({"simulate", scenario, "--set", "workload.batch_size=8"}, "", "and so does concurrency");
}

TEST_CASE("the table, CSV, page and picture say the same winner") {
  const TemporaryFolder folder;
  const std::string scenario = folder.write("s.yaml", kDecode);
  Arguments call = with({"decide", scenario, "--along", "workload.batch_size=[8, 16]", "--by", "step_ms"}, kSplits);
  const Outcome csv = run_moeline(with(call, {"--format", "csv"}));
  REQUIRE(csv.exit_code == 0);
  CHECK(
      csv.out.starts_with("workload.batch_size,parallelism={tp: 8},\"parallelism={tp: 8, ep: "
                          "8}\",winner,ratio,sure,asked,not_winning\n8,"));
  const std::string page = (folder.path() / "p.html").string(), picture = (folder.path() / "p.svg").string();
  const Outcome table = run_moeline(with(call, {"--html", page, "--svg", picture}));
  REQUIRE(table.exit_code == 0);
  CHECK(table.out.find("parallelism={tp: 8} wins") != std::string::npos);
  CHECK(read_text(page).find("parallelism={tp: 8} wins") != std::string::npos);
  CHECK(read_text(picture).starts_with("<svg data-program=\"moeline\""));
}

TEST_CASE("a setting that is refused everywhere loses to the other, and says why") {
  const auto d =
      decided(kDecode, {"--option", "parallelism={tp: 8}", "--option", "parallelism={tp: 7}", "--by", "step_ms"});
  CHECK(d["points"][0]["values"][1].IsNull());
  CHECK(std::string(d["points"][0]["winner"].GetString()) == "parallelism={tp: 8}");
  CHECK(std::string(d["why"][0]["because"].GetString()).find("parallelism.tp") != std::string::npos);
  CHECK(d["margin"][0]["ratio"].IsNull());
}

TEST_CASE("bad questions are refused with what is wrong") {
  const TemporaryFolder folder;
  const std::string scenario = folder.write("s.yaml", kDecode);
  const auto refused = [&](const Arguments& more, const std::string& says) {
    check_refused(with({"decide", scenario}, more), "", says);
  };
  refused({"--option", "parallelism"}, "is no key=value");
  refused(with(kSplits, {"--by", "stepms"}), "did you mean 'step_ms'?");
  refused(with(kSplits, {"--by", "ranks"}), "unknown metric");
  refused(with(kSplits, {"--by", "comm_busy_us"}), "neither better high nor low");
  refused(with(kSplits, {"--where", "tpotms <= 5"}), "did you mean 'tpot_ms'?");
  refused(with(kSplits, {"--along", "workload.batchsize=1..8"}), "did you mean 'workload.batch_size'?");
  refused({"--option", "paralelism={tp: 8}", "--option", "parallelism={tp: 4}"}, "did you mean 'parallelism'?");
  refused({"--option", "parallelism={tp: 7}", "--option", "parallelism={tp: 9}"},
          "none of the settings can be simulated");
  refused({"--option", "seed=1", "--option", "seed=1"}, "is given twice");
  refused({"--option", "parallelism={tp: abc}"}, "must be a whole number, not 'abc'");
  refused(with(kSplits, {"--by", "step_ms", "--along", "workload.kv_len=[64, nan]"}), "has a number that is none");
  refused(with(kSplits, {"--by", "step_ms", "--along", "workload.kv_len=[64, 128]", "--along", "workload.kv_len=[1]"}),
          "asked along twice");
  refused({"--option", "workload.kv_len=64", "--by", "step_ms", "--along", "workload.kv_len=64..128"}, "is set by");
  refused({"--option", "schedule=auto", "--along", "workload.mtp_acceptance=0.1..0.9", "--by", "step_ms"},
          "does not apply to any of the settings");
  refused(with(kSplits, {"--by", "step_ms", "--where", "ttft_ms <= 5"}), "it has no ttft_ms");
  for (const Arguments& wrong : {Arguments{"decide", scenario}, with({"decide", scenario, "--html", "x.html"}, kSplits),
                                 with({"decide", scenario, scenario}, kSplits)}) {
    CHECK(run_moeline(wrong).exit_code == 2);
  }
}

TEST_CASE("with another machine's kernels what is ahead by less than such steps have been off is too close to call") {
  const std::string scenario = source("experiments/studies/machine_what_if/scenario.yaml").string();
  const auto decided = [&](const std::string& machine) {
    return run_moeline({"decide", scenario, "--set", "hardware=" + machine, "--set", "parallelism={ep: 32}", "--option",
                        "precision.experts=nvfp4", "--option", "precision.experts=fp8"});
  };
  const std::string counts = "with another machine's kernels steps have been";
  CHECK(decided("vr200-nvl72").out.find(counts) != std::string::npos);
  CHECK(decided("gb200-nvl72").out.find(counts) == std::string::npos);
}

}  // TEST_SUITE("decide/decide")
