// What the commands print is as their schemas say, which describe every number and leave room for no other.
#include <doctest/doctest.h>

#include "tests/support/schema.hpp"
#include "tests/support/schema_inputs.hpp"
#include "tests/support/server_trace.hpp"
#include "tests/support/sweep.hpp"

TEST_SUITE("schema/printed") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string scenario_of(const std::string& experiment) {
  return source("experiments/studies/" + experiment + "/scenario.yaml").string();
}
const std::string kDecodes = scenario_of("decode_deepseek_v3_h800_ep128");
const std::string kPrefills = scenario_of("prefill_deepseek_v3_h800_ep32");
const std::string kTrains = scenario_of("train_layouts");
const std::string kSlotsOnly = source("tests/published/pipelines/scenario.yaml").string();

/// A call of a command, each of `sets` after a --set.
Arguments call(Arguments arguments, const std::vector<std::string>& sets = {}) {
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return arguments;
}

// By the schema of the command's output; what it prints.
rapidjson::Document check_printed(Arguments arguments) {
  const std::string schema = arguments.front() + "_output";
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = run_moeline(arguments);
  CAPTURE(joined(arguments));
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code <= 1);  // 1: nothing is within the limits, or a gate failed
  rapidjson::Document printed = parsed(outcome.out);
  check_by_schema(schema, printed);
  return printed;
}

}  // namespace

TEST_CASE("a simulated step of inference is as the schema says") {
  check_printed(call({"simulate", kDecodes}, {"layers=2", "ranks=folded"}));
  check_printed(call({"simulate", kDecodes}, {"layers=2", "schedule=auto", "kernels=open-2025-late"}));
  check_printed(call({"simulate", kDecodes}, {"layers=2", "samples=2", "parallelism.ep=16", "parallelism.dp=16"}));
  check_printed(call({"simulate", kDecodes}, {"parallelism={ep: 8, pp: 4}", "schedule=sequential"}));
  check_printed(call({"simulate", kDecodes}, {"workload.query_len=3", "workload.mtp_acceptance=[0.8, 0.5]"}));
  check_printed(call(
      {"simulate", kDecodes},
      {"schedule=sequential", "workload={phase: mixed, batch_size: 16, kv_len: 2000, tokens: 512, prompt_len: 2048}"}));
  check_printed(call({"simulate", kPrefills}, {"parallelism={cp: 4, ep: 32}", "workload.prompt_len=16384"}));
  check_printed(call({"simulate", scenario_of("skewed_decode_deepseek_v3_h800_ep144")},
                     {"layers=1", "parallelism.ep=72", "parallelism.dp=72"}));
}

TEST_CASE("a simulated chunk, step or pipeline of training is as the schema says") {
  check_printed(call({"simulate", chunk_scenario().string()},
                     {"layers=1", "routing={distribution: exact}", "ranks=folded", "samples=1"}));
  check_printed(call({"simulate", kTrains}, {"level=phase", "training.recompute=[moe_act]",
                                             "training.offload=[moe_act]", "training.offload_optimizer=true"}));
  check_printed({"simulate", kSlotsOnly});
  check_printed(call({"simulate", kSlotsOnly}, {"schedule=auto"}));
}

TEST_CASE("requests that are served are as the schema says") {
  const std::string head =
      "schema: 1\nmodel: qwen3-30b-a3b\nhardware: h200\nschedule: sequential\nparallelism: {ep: 1}\n"
      "workload: {phase: serve, requests: 40, input_len: [400, 600], output_len: 20, batch_size: 8, tokens: 512, ";
  const TemporaryFolder folder;
  CHECK(check_printed({"simulate", folder.write("loop.yaml", head + "concurrency: 8}\n")}).HasMember("first"));
  const std::string apart =
      "rate: 40, prefill: {replicas: 1}, replicas: 2, scaling: {least: 1, on_above: 8, off_below: 4, start_s: 1}}\n";
  const rapidjson::Document printed = check_printed({"simulate", folder.write("apart.yaml", head + apart)});
  CHECK(printed.HasMember("prompts"));
  CHECK(printed.HasMember("mean_replicas_on"));
}

TEST_CASE("the folder of a run, and what is read from its trace, are as the schemas say") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_moeline(call({"simulate", kDecodes, "-o", run}, {"layers=2", "ranks=folded"})).exit_code == 0);
  check_by_schema("run_folder", parsed(content_of(run + "/manifest.json")));
  check_by_schema("simulate_output", parsed(content_of(run + "/metrics.json")));
  const std::string trace = run + "/traces/rank_0.json";
  check_printed({"analyze", trace});
  check_printed(call({"analyze", trace, "--scenario", kDecodes, "--hardware", "h800"}, {"layers=2"}));
  check_printed({"replay", trace, "--scale", "transfer=1.4"});
  check_printed({"explain", trace});
  check_printed(call({"compare", kDecodes, trace}, {"layers=2", "ranks=folded"}));
}

TEST_CASE("what is read from the traces of several ranks is as the schema says") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_moeline(call({"simulate", kDecodes, "-o", run, "--trace-ranks", "0,1"},
                           {"layers=2", "ranks=all", "parallelism={ep: 8}"}))
              .exit_code == 0);
  const rapidjson::Document printed =
      check_printed({"analyze", run + "/traces/rank_0.json", run + "/traces/rank_1.json"});
  CHECK(printed["ranks"].Size() == 2);
}

TEST_CASE("what is read from a server's trace is as the schemas say") {
  const TemporaryFolder folder;
  const std::vector<std::string> steps = {"execute_context_0(0)_generation_8(8)",
                                          "execute_context_0(0)_generation_8(8)",
                                          "execute_context_1(512)_generation_8(8)"};
  const std::string a = folder.write("a.json", server_trace({.steps = steps, .layers = 4}));
  const std::string b = folder.write("b.json", server_trace({.steps = steps, .layers = 4, .pace = 1.2}));
  CHECK(check_printed({"analyze", a})["ranks"][0]["steps"].Size() == 3);
  CHECK(check_printed({"compare", a, b}).HasMember("steps"));
  check_printed({"replay", a});
}

TEST_CASE("explanations are as the schema says") {
  check_printed(call({"explain", kDecodes}, {"layers=4", "ranks=folded"}));
  check_printed(call({"explain", kTrains}, {"level=phase"}));
  check_printed({"explain", kSlotsOnly});
}

TEST_CASE("what a search found is as the schema says") {
  const std::vector<std::string> small = {"layers=2", "ranks=all", "parallelism.ep=16", "parallelism.dp=16"};
  check_printed(call({"search", kDecodes, "--most", "3"}, small));
  const TemporaryFolder folder;
  const std::string step = folder.write("step.yaml", schema_inputs::kSmallStep);
  check_printed(call({"search", step, "--most", "2", "--over", "schedules,stages"}, {"layers=4"}));
}

TEST_CASE("what is listed, counted and priced is as the schemas say") {
  for (const char* kind : {"models", "families", "hardware", "schedules"}) check_printed({"list", kind});
  check_printed({"list", "models", "kimi-k3"});
  check_printed({"list", "families", "deepseek_v3"});
  check_printed({"list", "hardware", "h200"});
  check_printed({"list", "hardware", "h800"});
  check_printed({"list", "hardware", "b300"});
  for (const char* schedule : {"sequential", "per-expert", "zb1p"}) check_printed({"list", "schedules", schedule});
  for (const char* model : {"deepseek-v3", "nemotron-3-nano", "llama-3.1-405b"}) check_printed({"model", model});
  check_printed(
      {"price", "h800", "gemm:m=128,n=7168,k=2048", "mla_decode:batch=64", "dispatch:mode=low_latency,ep=16"});
  check_printed({"price", "h200", "linear:dtype=bf16,m=777,n=7168,k=2048"});
  check_printed({"hardware", "derive", "b200", "--like", "h200"});
}

TEST_CASE("placements of experts are as the schema says") {
  check_printed({"balance", "--power-law", "1", "--experts", "64", "--gpus", "16", "--nodes", "4", "--groups", "4"});
  check_printed({"balance", "--power-law", "4", "--experts", "16", "--gpus", "4", "--top-k", "4"});  // with a warning
  const TemporaryFolder folder;
  const std::string loads = folder.write(
      "loads.csv", "step,layer,expert,load\n0,0,0,5\n0,0,1,1\n0,0,2,2\n0,0,3,2\n1,0,0,1\n1,0,1,6\n1,0,2,2\n1,0,3,1\n");
  CHECK(check_printed({"balance", loads, "--gpus", "2"}).HasMember("rebalancing"));
  const std::string map = folder.write("map.csv", "token,layer,expert0,expert1\n0,0,0,1\n1,0,1,2\n2,0,3,0\n");
  check_printed({"balance", map, "--gpus", "2", "--nodes", "2", "--experts", "4"});
}

TEST_CASE("a swept study is as the schema says") {
  const SweptStudy study;
  const rapidjson::Document printed = check_printed({"sweep", study.study, "-o", study.path("table.sqlite")});
  CHECK(printed["points"][3].HasMember("metrics"));
}

TEST_CASE("plans for serving and for training are as the schema says") {
  const TemporaryFolder folder;
  const std::string plan =
      "schema: 1\nmodel: deepseek-v3\nhardware: {h800: {usd_per_gpu_hour: 2}}\n"
      "traffic: {requests_per_s: 20, input: {mean: 2000}, output: {mean: 200}, course: [0.5, 1]}\n"
      "limits: {ttft_ms: 4000, tpot_ms: 60}\nprefill: {ep: [16], tokens: [4096], comm_sms: [16], two_batch: [false]}\n"
      "decode: {ep: [32], batch_size: [32], two_batch: [true]}\n";
  check_printed({"plan", folder.write("plan.yaml", plan), "--confirm"});
  const std::string strict = folder.write("strict.yaml", replaced(plan, "tpot_ms: 60", "tpot_ms: 1"));
  CHECK(check_printed({"plan", strict, "--no-sensitivity"}).HasMember("nearest"));
  check_printed(
      {"plan", folder.write("training.yaml",
                            "schema: 1\nmodel: mixtral-8x7b\nhardware: {h100: {usd_per_gpu_hour: 2}}\n"
                            "training: {gpus: 64, global_batch_size: 64, seq_len: 4096, tokens: 1.0e+12}\n"
                            "search: {tp: [1], pp: [4], ep: [8], micro_batch_size: [1], schedule: [1f1b]}\n")});
}

TEST_CASE("scored facts, and rows of served models, are as the schema says") {
  for (const char* facts : {"decode_limit", "models", "pipelines", "deepgemm_h800_2025_02", "flash_mla_h800"}) {
    check_printed({"validate", source("tests/published/" + std::string(facts) + ".yaml").string()});
  }
  const TemporaryFolder folder;
  const std::string absent = folder.write("absent.yaml", schema_inputs::kServed);
  CHECK(check_printed({"validate", absent})["served"][0].HasMember("skipped"));
  const std::string rows =
      "id,class,system,model_path,precision,backend,mode,concurrency,isl,osl,tp_size,pp_size,attention_dp_size,"
      "moe_tp_size,moe_ep_size,silicon_ttft_ms,silicon_tpot_ms\n"
      "1,C,b200_sxm,a,fp8,sglang,agg,8,1024,64,8,1,1,1,8,300,12\n2,C,b200_sxm,a,fp8,sglang,agg,4,1024,64,8,1,1,1,8,300,"
      "12\n"
      "3,X,b200_sxm,a,fp8,sglang,agg,8,1024,64,8,1,1,1,8,300,12\n";
  const std::string study = replaced(schema_inputs::kServed, "aic/none.csv", folder.write("rows.csv", rows));
  const std::string shorter = replaced(study, "requests_per_slot: 10", "requests_per_slot: 2");
  const rapidjson::Document printed = check_printed({"validate", folder.write("rows.yaml", shorter)});
  CHECK(printed["served"][0]["rows"][1].HasMember("loop"));
}

}  // TEST_SUITE("schema/printed")
