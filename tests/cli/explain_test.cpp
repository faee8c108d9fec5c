// moeline explain: why a scenario or a trace takes as long as it does.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include <map>

#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("cli/explain") {

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
        explained(source(std::string("experiments/studies/") + name + "/scenario.yaml").string(), {"--set", "layers=4"}));
  }
  check_adds_up(
      explained(source("experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml").string(), {"--set", "level=phase"}));
}

TEST_CASE("with a NIC so narrow that nothing hides it, dispatch and combine are blamed") {
  const std::string decode = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
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

TEST_CASE("of the training trace what half of an item's time saves is what replay --scale saves") {
  if (!present(training_trace())) return;
  const rapidjson::Document result = explained(training_trace().string());
  const std::map<std::string, std::string> scaled = {{"phase:attn(B)", "attn(B)"},
                                                     {"class:gemm", "kernel:gemm"},
                                                     {"class:attention", "kernel:attention"},
                                                     {"barrier", "barrier"}};
  std::size_t checked = 0;
  for (const auto& each : result["sensitivities"].GetArray()) {
    const auto scale = scaled.find(each["what"].GetString());
    if (scale == scaled.end()) continue;
    CAPTURE(scale->first);
    const Outcome replay =
        run_moeline({"replay", training_trace().string(), "--scale", scale->second + "=0.5", "--format", "json"});
    const rapidjson::Document replayed = parsed(replay.out);
    const double saved = 1 - replayed["span_us"].GetDouble() / replayed["baseline_span_us"].GetDouble();
    CHECK(each["gain_50"].GetDouble() == doctest::Approx(saved).epsilon(1e-4));
    ++checked;
  }
  CHECK(checked == scaled.size());
}

TEST_CASE("why the SMs of a decode step are idle adds up to what their bound leaves of the span, ramp aside") {
  const rapidjson::Document result =
      explained(source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string(), {"--set", "layers=8"});
  CHECK(std::string(result["idle_of"].GetString()) == "sm_time");
  double bound = 0;  // its work, and the little before and after it
  for (const auto& each : result["bounds"].GetArray()) {
    if (std::string(each["what"].GetString()) == "sm_time") bound = each["us"].GetDouble();
  }
  CHECK(sum(result["idle"]) + bound == doctest::Approx(result["span_us"].GetDouble()).epsilon(0.01));
  CHECK(result["period_us"].GetDouble() > 0.8 * result["span_us"].GetDouble() / 11);  // 8 MoE and 3 dense layers
}

TEST_CASE("what is neither scenario nor trace is refused, and so are options of the one with the other") {
  const TemporaryFolder folder;
  const std::string note = folder.write("note.json", "hello");
  const std::string bad = folder.write("bad.yaml", "schema: 1\nmodle: x\n");
  check_refused({"explain", note}, note, "");
  check_refused({"explain", bad}, bad + ":2", "modle");
  CHECK(run_moeline({"explain", bad, "--from", "100"}).exit_code == 2);
  CHECK(run_moeline({"explain", note, "--set", "layers=2"}).exit_code == 2);
  CHECK(run_moeline({"explain", bad, "--map", note}).exit_code == 2);
  CHECK(run_moeline({"explain", note, "--scenario", bad}).exit_code == 2);
  CHECK(
      run_moeline({"simulate", bad, "--html", (folder.path() / "a").string(), "--svg", (folder.path() / "a").string()})
          .exit_code == 2);
}

TEST_CASE("modules stand in the JSON of a scenario and of a trace, every one after the one that it is part of") {
  const std::string decode = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const rapidjson::Document result = explained(decode, {"--set", "layers=4"});
  const rapidjson::Document model = in_json({"model", "deepseek-v3"});
  std::map<std::string, double> us;
  for (const auto& row : result["modules"].GetArray()) {
    const std::string module = row["module"].GetString();
    CAPTURE(module);
    us[module] = 0;
    if (!row["parent"].IsNull()) us.at(row["parent"].GetString()) += row["us"].GetDouble();
    CHECK(2 * row["macs"].GetDouble() == doctest::Approx(row["flops"].GetDouble()));
    if (row["us"].GetDouble() > 0) {
      const double tflops = row["flops"].GetDouble() / row["us"].GetDouble() / 1e6;
      CHECK(row["tflops"].GetDouble() == doctest::Approx(tflops).epsilon(1e-3));
    }
    for (const auto& same : model["modules"].GetArray()) {
      if (module == same["module"].GetString()) CHECK(row["parameters"].GetInt64() == same["parameters"].GetInt64());
    }
  }
  for (const auto& row : result["modules"].GetArray()) {
    const double parts = us.at(row["module"].GetString());
    if (parts > 0) CHECK(parts == doctest::Approx(row["us"].GetDouble()).epsilon(1e-4));
  }
  CHECK(result["modules"][0]["parameters"].GetInt64() == model["parameters"].GetInt64());
}

TEST_CASE("a depth leaves the deeper modules out, in the table and in JSON") {
  const std::string decode = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const Arguments shallow = {"explain", decode, "--set", "layers=4", "--modules", "--depth", "1"};
  const Outcome table = run_moeline(shallow);
  CHECK(table.exit_code == 0);
  CHECK(table.out.find("LM head") != std::string::npos);
  CHECK(table.out.find("o_proj") == std::string::npos);
  CHECK(in_json(shallow)["modules"].Size() == 4);  // model, embedding, layers, LM head
  CHECK(run_moeline({"explain", decode, "--depth", "1"}).exit_code == 2);
}

TEST_CASE("of given slots there are no modules, and who asks for them is told") {
  const std::string pipeline = source("experiments/studies/pipelines_deepseek_v3_2048_h800/scenario.yaml").string();
  const Arguments slots = {"--set", "slot_costs_ms={F: 1, B: 2, W: 1, F&B: 3}"};
  CHECK_FALSE(explained(pipeline, slots).HasMember("modules"));
  Arguments arguments = {"explain", pipeline, "--modules"};
  arguments.insert(arguments.end(), slots.begin(), slots.end());
  check_refused(arguments, pipeline, "--modules");
}

TEST_CASE("what a step's kernels are charged is what price says of their OPs") {
  const std::string decode = source("experiments/studies/fused_or_separate_experts/scenario.yaml").string();
  const rapidjson::Document result = explained(decode, {"--kernels"});
  CHECK(sum(result["kernels"]) == doctest::Approx(result["kernels_us"].GetDouble()).epsilon(1e-4));
  const rapidjson::Document scenario = in_json({"simulate", decode});
  Arguments price = {"price", scenario["scenario"]["hardware"].GetString(), "--kernels",
                     scenario["scenario"]["kernels"].GetString()};
  std::vector<double> charged;
  for (const auto& kernel : result["kernels"].GetArray()) {
    if (kernel["op"].IsNull()) continue;
    price.emplace_back(kernel["op"].GetString());
    charged.push_back(kernel["op_us"].GetDouble());
  }
  CHECK(charged.size() > 20);
  const rapidjson::Document prices = in_json(price);
  for (std::size_t i = 0; i < charged.size(); ++i) {
    const auto& op = prices["ops"][static_cast<rapidjson::SizeType>(i)];
    CAPTURE(op["op"].GetString());
    CHECK(op["solo_us"].GetDouble() == charged[i]);
  }
}

TEST_CASE("kernels are of a scenario, and of slots that are one task each there are none") {
  const std::string pipeline = source("experiments/studies/pipelines_deepseek_v3_2048_h800/scenario.yaml").string();
  check_refused({"explain", pipeline, "--kernels", "--set", "slot_costs_ms={F: 1, B: 2, W: 1, F&B: 3}"}, pipeline,
                "--kernels");
  check_refused({"explain", pipeline, "--kernels", "--set", "level=phase", "--set", "workload.global_batch_size=4096"},
                pipeline, "level: operator");
  CHECK(run_moeline({"explain", "trace.json", "--kernels"}).exit_code == 2);
  CHECK(run_moeline({"explain", pipeline, "--kernels", "--modules"}).exit_code == 2);
}

TEST_CASE("a module that a map names must be one") {
  if (!present(training_trace())) return;
  const TemporaryFolder folder;
  const std::string map = folder.write("map.yaml", "schema: 1\nmodules:\n  router/gates: gemm\n");
  check_refused({"explain", training_trace().string(), "--map", map}, map + ":3", "router/gate");
  CHECK(run_moeline({"explain", training_trace().string(), "--set", "layers=2"}).exit_code == 2);
}

TEST_CASE("a trace that we wrote has the modules of the scenario that it is of") {
  const std::string decode = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const TemporaryFolder folder;
  const std::string trace = folder / "trace.json";
  REQUIRE(run_moeline({"simulate", decode, "--set", "layers=4", "--trace", trace}).exit_code == 0);
  const rapidjson::Document measured = explained(trace, {"--scenario", decode, "--set", "layers=4"});
  const rapidjson::Document predicted = explained(decode, {"--set", "layers=4"});
  REQUIRE(measured["modules"].Size() == predicted["modules"].Size());
  for (rapidjson::SizeType i = 0; i < predicted["modules"].Size(); ++i) {
    const auto& row = predicted["modules"][i];
    CAPTURE(row["module"].GetString());
    CHECK(measured["modules"][i]["us"].GetDouble() == doctest::Approx(row["us"].GetDouble()).epsilon(1e-3));
    CHECK(measured["modules"][i]["flops"].GetDouble() == doctest::Approx(row["flops"].GetDouble()));
  }
  CHECK(run_moeline({"explain", decode, "--scenario", decode}).exit_code == 2);
}

TEST_CASE("a scenario that comes through a pipe is read once, whatever schedule it names") {
  const TemporaryFolder folder;
  const std::string decode = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  for (const char* schedule : {"sequential", "auto"}) {
    CAPTURE(schedule);
    const std::string pipe = (folder.path() / schedule).string();
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    std::thread writer([&] { std::ofstream(pipe) << content_of(decode); });
    const Outcome outcome =
        run_moeline({"simulate", pipe, "--set", "layers=4", "--set", std::string("schedule=") + schedule});
    writer.join();
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("layer, us") != std::string::npos);
  }
}

}  // TEST_SUITE("cli/explain")
