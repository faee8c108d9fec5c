// JSON of every command: its version, whether memory suffices, and what `list` has to say.
#include <algorithm>

#include "architecture/parameters.hpp"
#include "hardware/profile.hpp"
#include "schedules/scenario/schedule_kinds.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/json.hpp"
#include "tests/support/step.hpp"
#include "tests/support/sweep.hpp"

TEST_SUITE("cli/json") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kSlots = source("tests/published/pipelines/scenario.yaml").string();

const std::string kPlan =
    "schema: 1\n"
    "model: deepseek-v3\n"
    "hardware: {h800: {usd_per_gpu_hour: 2}}\n"
    "traffic: {requests_per_s: 20, input: {mean: 2000}, output: {mean: 200}}\n"
    "limits: {ttft_ms: 4000, tpot_ms: 60}\n"
    "serving: [disaggregated]\n"
    "prefill: {ep: [16], tokens: [4096], comm_sms: [16]}\n"
    "decode: {ep: [32], batch_size: [32], two_batch: [true]}\n";

std::vector<std::string> names_of(const rapidjson::Value& list) {
  std::vector<std::string> names;
  for (const auto& each : list.GetArray()) names.emplace_back(each["name"].GetString());
  return names;
}

rapidjson::Document simulated(const std::filesystem::path& scenario, Arguments more = {}) {
  more.insert(more.begin(), {"simulate", scenario.string(), "--format", "json"});
  return json_of(more);
}

}  // namespace

TEST_CASE("every JSON object that a command prints or writes says which version it is") {
  const ValidScenario valid;
  const SweptStudy study;
  const TemporaryFolder folder;
  const std::string trace = folder / "trace.json";
  const std::string run = folder / "run";
  const std::string graph = folder / "graph.json";
  REQUIRE(run_moeline(valid.with({"--trace", trace, "-o", run})).exit_code == 0);
  REQUIRE(run_moeline({"replay", trace, "--graph", graph}).exit_code == 0);
  std::vector<Arguments> calls = {{"simulate", valid.file},
                                  {"simulate", kSlots},
                                  {"compare", valid.file, trace},
                                  {"price", "h800", "gemm"},
                                  {"model", "deepseek-v3"},
                                  {"analyze", trace},
                                  {"replay", trace},
                                  {"validate", source("tests/published/decode_limit.yaml").string()},
                                  {"sweep", study.study, "-o", study.path("table.sqlite")},
                                  {"plan", folder.write("plan.yaml", kPlan)},
                                  {"balance", "--power-law", "1", "--experts", "64", "--gpus", "16"},
                                  {"list", "models"},
                                  {"list", "models", "gpt-oss-120b"},
                                  {"list", "hardware"},
                                  {"list", "hardware", "h200"},
                                  {"list", "schedules"},
                                  {"list", "schedules", "decode-two-batch"},
                                  {"list", "schedules", "zb1p"}};
  for (Arguments& call : calls) {
    call.insert(call.end(), {"--format", "json"});
    CAPTURE(joined(call));
    CHECK(json_of(call)["schema_version"].GetInt() == 1);
  }
  for (const std::string& file : {run + "/manifest.json", run + "/metrics.json", graph}) {
    CAPTURE(file);
    CHECK(parsed(content_of(file))["schema_version"].GetInt() == 1);
  }
}

TEST_CASE("JSON says at its top whether the model fits, and by which schedule, wherever memory is known") {
  const rapidjson::Document decode = simulated(decode_scenario());
  CHECK(decode["fits_memory"].GetBool());
  CHECK(decode["schedule"] == "decode-two-batch");
  const Arguments few = {"--set", "parallelism.ep=8"};  // 32 experts of each layer on a GPU
  CHECK_FALSE(simulated(decode_scenario(), few)["fits_memory"].GetBool());
  const rapidjson::Document step = simulated(step_scenario(), {"--set", "level=phase"});
  CHECK(step["fits_memory"].GetBool());
  CHECK(step["schedule"] == "dualpipe");
  const Arguments gpipe = {"--set", "level=phase", "--set", "schedule=gpipe"};
  CHECK_FALSE(simulated(step_scenario(), gpipe)["fits_memory"].GetBool());
}

TEST_CASE("JSON does not say whether a model fits where its memory is not known") {
  const ValidScenario valid;
  for (const std::string& scenario : {valid.file, kSlots}) {  // a chunk of training, and slots of given length
    const rapidjson::Document unknown = simulated(scenario);
    CHECK_FALSE(unknown.HasMember("fits_memory"));
    CHECK_FALSE(unknown["metrics"].HasMember("memory_gib"));
    CHECK(unknown.HasMember("schedule"));
  }
}

TEST_CASE("list has the same names as JSON and as text") {
  for (const char* kind : {"models", "hardware", "schedules"}) {
    std::string text;
    const rapidjson::Document listed = json_of({"list", kind, "--format", "json"});
    for (const std::string& name : names_of(listed[kind])) text += name + "\n";
    CHECK(run_moeline({"list", kind}).out == text);
  }
}

TEST_CASE("a model's JSON holds the fields of its file, each with its type, and its parameters") {
  const rapidjson::Document model = json_of({"list", "models", "gpt-oss-120b", "--format", "json"});
  CHECK(model["parameters"].GetDouble() == doctest::Approx(parameters(load_architecture("gpt-oss-120b"))));
  CHECK(model["fields"]["num_hidden_layers"].GetInt() == 36);
  CHECK(model["fields"]["attention_bias"].GetBool());
  CHECK(model["fields"]["model_type"] == "gpt_oss");
  CHECK(model["fields"]["quantization_config"]["quant_method"] == "mxfp4");
  const rapidjson::Document v3 = json_of({"list", "models", "deepseek-v3", "--format", "json"});
  CHECK(v3["fields"]["quantization_config"]["weight_block_size"][1].GetInt() == 128);
}

TEST_CASE("a machine's JSON holds every fact with its source, and of every family what was measured and how well met") {
  const HardwareProfile profile = load_profile("h800");
  const rapidjson::Document machine = json_of({"list", "hardware", "h800", "--format", "json"});
  for (const MachineFact& fact : list_facts(profile.facts)) {
    const auto& listed = machine["facts"][fact.key.c_str()];
    CHECK(listed["value"].GetDouble() == doctest::Approx(fact.value));
    CHECK(listed["source"] == profile.sources.at(fact.key).c_str());
  }
  REQUIRE(names_of(machine["kernel_sets"]) == profile.set_names());
  const auto& late = machine["kernel_sets"][2];
  CHECK(late["source"] == profile.kernel_sets[2].source.c_str());
  CHECK(late["constants"]["gemm_fp8.startup_us"].GetDouble() == doctest::Approx(4.3482));
  const auto families = late["families"].GetArray();
  const auto gemm =
      std::find_if(families.begin(), families.end(), [](const auto& f) { return f["family"] == "gemm_fp8"; });
  REQUIRE(gemm != families.end());
  CHECK((*gemm)["measured"]["n"]["high"].GetInt() == 36864);
  CHECK((*gemm)["held_out"].GetBool());
  CHECK((*gemm)["rows"].GetInt() == 90);
  const auto& unknown = late["families_without_measurements"]["by_roofline"];
  CHECK(std::any_of(unknown.Begin(), unknown.End(), [](const auto& family) { return family == "send"; }));
}

TEST_CASE("every schedule has one line about itself and the phases that it goes with, and its plan where it has one") {
  const rapidjson::Document listed = json_of({"list", "schedules", "--format", "json"});
  for (const auto& schedule : listed["schedules"].GetArray()) {
    CHECK(std::string(schedule["about"].GetString()).size() > 20);
    CHECK(schedule["phases"].Size() == (schedule["name"] == "sequential" ? 4 : 1));
  }
  const rapidjson::Document chunk = json_of({"list", "schedules", "dualpipe-chunk", "--format", "json"});
  CHECK(chunk["plan"]["side"][0] == "mlp(W)");
  CHECK(json_of({"list", "schedules", "DualPipe-Chunk", "--format", "JSON"}).HasMember("plan"));
  CHECK_FALSE(json_of({"list", "schedules", "1f1b", "--format", "json"}).HasMember("plan"));
  check_refused({"list", "schedules", "zb2p", "--format", "json"}, "", "did you mean 'zb1p'?");
}

}  // TEST_SUITE("cli/json")
