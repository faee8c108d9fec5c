// Whole steps of training: what of a scenario is refused where, what is said, and what the results hold.
#include <rapidjson/document.h>

#include <filesystem>

#include "base/file.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/step.hpp"
#include "trace/trace.hpp"

TEST_SUITE("cli/bad_step_scenario") {

using namespace moeline::testing;

namespace {

const std::string kStep =
    "schema: 1\n"                                                                            // 1
    "model: deepseek-v3\n"                                                                   // 2
    "hardware: h800\n"                                                                       // 3
    "schedule: dualpipe\n"                                                                   // 4
    "parallelism: {pp: 4, ep: 8, dp: 8}\n"                                                   // 5
    "workload: {phase: train, micro_batch_size: 1, seq_len: 4096, global_batch_size: 64}\n"  // 6: 8 micro-batches
    "layers: 8\n"                                                                            // 7
    "training: {recompute: selective}\n"                                                     // 8
    "stages: balanced\n"                                                                     // 9
    "routing: {distribution: balanced}\n";                                                   // 10

void check_step_changes(const std::vector<TextChange>& changes) {
  for (const auto& [from, to, line, says] : changes) check_scenario_refused(replaced(kStep, from, to), line, says);
}

std::string as(const std::string& schedule, const std::string& from = "", const std::string& to = "") {
  return replaced(replaced(kStep, "dualpipe", schedule), from, to);
}

}  // namespace

TEST_CASE("ranks, stages and micro-batches that a step cannot have are refused with the rule") {
  check_step_changes({
      {"pp: 4", "pp: 3", 5, "parallelism.pp must be even for dualpipe"},
      {"global_batch_size: 64", "global_batch_size: 60", 6,
       "must be a multiple of dp x micro_batch_size = 8: 60 is not"},
      {"global_batch_size: 64", "global_batch_size: 48", 6,
       "gives 6 micro-batches; dualpipe needs at least 2 x pp = 8"},
      {"layers: 8", "layers: 3", 9, "stages cannot be balanced: 3 layers cannot be split over 4 stages"},
      {"balanced\nrouting", "[2, 2, 2]\nrouting", 9, "stages must list the decoder layers of 4 stages, not of 3"},
      {"balanced\nrouting", "[2, 2, 2, 3]\nrouting", 9, "stages list 9 decoder layers; there are 8"},
      {"balanced\nrouting", "[2, 2, 0, 4]\nrouting", 9, "stages leave stage 2 without a layer"},
      {"balanced\nrouting", "even\nrouting", 9, "stages has an unknown value 'even'"},
  });
  const std::string deep = replaced(replaced(kStep, "layers: 8\n", "layers: all\n"), "pp: 4", "pp: 80");
  check_scenario_refused(replaced(deep, "global_batch_size: 64", "global_batch_size: 1280"), 9,
                         "61 layers, heads and MTP modules cannot be split over 80 stages");
  check_scenario_refused(as("interleaved-1f1b", "pp: 4", "pp: 4, virtual_pp: 4"), 9,
                         "8 layers cannot be split over 16 stages");
}

TEST_CASE("choices of training are checked, and belong to training") {
  check_step_changes({
      {"selective}", "some}", 8, "training.recompute"},
      {"recompute: selective", "recomputation: full", 8, "unknown key 'training.recomputation'"},
      {"recompute: selective", "zero: 4", 8, "training.zero must be from 0 to 3"},
      {"recompute: selective", "zero: 3", 8,
       "training.zero 3, splits every block between replicas by the operators megatron"},
      {"dp: 8", "dp: 8, cp: 2", 5, "parallelism.cp above 1 is not what the operators deepseek do"},
      {"dp: 8", "dp: 8, moe_tp: 2", 5, "parallelism.moe_tp above 1 is not what the operators deepseek do"},
      {"recompute: selective", "mtp: maybe", 8, "training.mtp"},
      {"recompute: selective", "weights: fp8", 8, "unknown key 'training.weights'"},
      {"recompute: selective", "operators: nemo", 8, "training.operators has an unknown value 'nemo'"},
      {"recompute: selective", "recompute: [mlp]", 8, "recompute lists modules of the operators megatron alone"},
      {"balanced}", "power_law}", 10, "routing.distribution 'power_law' is not modelled in whole pipelines"},
  });
  const std::string chunk = as("dualpipe-chunk", "stages: balanced\n", "");
  check_scenario_refused(replaced(chunk, "recompute: selective", "zero: 1"), 8, "unknown key 'training.zero'");
  check_scenario_refused(replaced(chunk, "selective", "full"), 8, "full is for whole pipelines");
  check_scenario_refused(as("dualpipe-chunk"), 9, "stages belongs to pipelines, and dualpipe-chunk is none");
  check_scenario_refused(kStep + "ranks: all\n", 11, "does not go with a whole pipeline");
  check_scenario_refused(kStep + "samples: 3\n", 11, "does not go with a whole pipeline");
  check_scenario_refused(replaced(kStep, "selective", "full, activations: bf16"), 8,
                         "training.activations do not apply");
  check_scenario_refused(replaced(kStep, "recompute: selective", "mtp: true"), 8, "these are MoE layers alone");
  const std::string whole = replaced(kStep, "layers: 8\n", "layers: all\n");
  check_scenario_refused(replaced(replaced(whole, "deepseek-v3", "kimi-k2"), "recompute: selective", "mtp: true"), 8,
                         "'kimi-k2' has no MTP module");
  check_scenario_refused(kStep + "level: kernel\n", 11, "level has an unknown value 'kernel'");
  check_scenario_refused(as("gpipe") + "overlap: none\n", 11, "overlap does not apply to the schedule gpipe");
  check_scenario_refused(as("dualpipe-chunk", "stages: balanced\n", "overlap: none\n"), 9, "none belongs to pipelines");
}

TEST_CASE("DeepSeek's operators train models like theirs in FP8, and Megatron's other formats and models") {
  const std::string of_deepseek = replaced(kStep, "recompute: selective", "operators: deepseek");
  check_scenario_refused(of_deepseek + "precision: {linear: bf16, experts: bf16}\n", 8,
                         "training.operators deepseek train in FP8 alone");
  check_scenario_refused(replaced(of_deepseek, "deepseek-v3", "qwen3-235b-a22b"), 8,
                         "training.operators deepseek train MLA with shared experts");
  check_scenario_refused(replaced(kStep, "deepseek-v3", "gpt-oss-120b"), 2,
                         "has weights in mxfp4, and training is modelled in BF16 and block-scaled FP8");
  check_scenario_refused(replaced(kStep, "deepseek-v3", "qwen3-next-80b-a3b"), 2,
                         "training is not modelled for linear attention");
  check_scenario_refused(replaced(kStep, "ep: 8, dp: 8", "ep: 8, dp: 8, tp: 2"), 5, "training.operators=megatron do");
  const std::string bf16 = replaced(kStep, "recompute: selective", "recompute: none");
  CHECK(simulate_text(bf16 + "precision: {linear: bf16, experts: bf16}\n").exit_code == 0);
}

TEST_CASE("Megatron's layouts that do not divide are refused with the nearest that do, and keys with what they mean") {
  const std::string step = replaced(as("1f1b", "ep: 8, dp: 8", "ep: 8, dp: 8, tp: 2"), "recompute: selective",
                                    "operators: megatron, recompute: [mla_up_proj, mlp]");
  CHECK(simulate_text(step).exit_code == 0);
  check_changes_of(
      step,
      {
          {"tp: 2", "tp: 3", 5,
           "parallelism.tp must divide the 128 attention heads: 3 does not; possible near it: 2, 4"},
          {"ep: 8", "ep: 3", 5, "parallelism.ep must divide tp x dp: 3 does not divide 16"},
          {"dp: 8", "dp: 8, cp: 3", 5, "parallelism.ep must divide tp x cp, or be a multiple of it: 8 and 6 are not"},
          {"dp: 8", "dp: 8, moe_tp: 3", 5, "parallelism.ep x moe_tp must divide tp x dp: 24 does not divide 16"},
          {"[mla_up_proj, mlp]", "[mla_up_proj, mpl]", 8, "unknown module 'mpl'; did you mean 'mlp'?"},
          {"[mla_up_proj, mlp]", "[mlp, mlp]", 8, "training.recompute lists mlp twice"},
          {"[mla_up_proj, mlp]", "[]", 8, "training.recompute lists no modules"},
          {"[mla_up_proj, mlp]", "core_attn", 8, "training.recompute lists modules: [core_attn]"},
          {"deepseek-v3", "mixtral-8x7b", 8, "does not apply to 'mixtral-8x7b': mla_up_proj: there is no MLA"},
          {"operators: megatron", "operators: megatron, activations: fp8", 8,
           "training.activations belong to the operators deepseek"},
      });
  check_scenario_refused(step + "comm: {mode: none}\n", 11, "comm.mode none, needs ep 1: 8 ranks share the experts");
  check_scenario_refused(step + "comm: {mode: low_latency}\n", 11, "comm.mode 'low_latency' is not modelled");
  check_scenario_refused(replaced(step, "ep: 8", "ep: 1") + "comm: {mode: normal}\n", 11,
                         "has nobody to send to where ep is 1; there is: none");
}

TEST_CASE("a step that does not fit is said to, with its terms, and is infeasible under --strict") {
  const std::string scenario = moeline::testing::step_scenario().string();
  const Outcome outcome = run_moeline({"simulate", scenario, "--set", "schedule=gpipe", "--set", "level=phase"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("does not fit:") != std::string::npos);
  CHECK(outcome.err.find("activations") != std::string::npos);
  const Outcome strict =
      run_moeline({"simulate", scenario, "--set", "schedule=gpipe", "--set", "level=phase", "--strict"});
  CHECK(strict.exit_code == 1);
  CHECK(strict.err.find("does not fit in memory") != std::string::npos);
}

TEST_CASE("a step's JSON has its parts, every rank's memory over time, and a row for each slot") {
  const Outcome outcome = simulate_text(kStep, {"--format", "json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document json;
  json.Parse(outcome.out.c_str());
  REQUIRE_FALSE(json.HasParseError());
  const auto& metrics = json["metrics"];
  double sum = 0;
  for (const char* part : {"forward_ms", "backward_ms", "weight_ms", "overlapped_ms", "bubble_ms", "optimizer_ms"}) {
    sum += metrics[part].GetDouble();
  }
  CHECK(sum == doctest::Approx(metrics["step_ms"].GetDouble()).epsilon(1e-6));
  CHECK_FALSE(metrics.HasMember("mfu_non_causal"));  // of layers alone, tokens need no known FLOPs
  REQUIRE(json["ranks"].Size() == 4);
  for (const auto& rank : json["ranks"].GetArray()) {
    const auto& memory = rank["memory"];
    CHECK(memory["total_gib"].GetDouble() > memory["activations_gib"].GetDouble());
    CHECK(memory["activations_over_time"].Size() >= 2 * 8);  // 4 micro-batches on each of two stages come and go
  }
  CHECK(json["stages"].Size() == 4);
  CHECK(json["phases"].Size() > 4 * 15);
  CHECK(json["scenario"]["training"]["recompute"] == "selective");
  CHECK(json["scenario"]["level"] == "operator");
}

TEST_CASE("a run folder of a step holds a trace of phases for every rank, packed on request") {
  const TemporaryFolder folder;
  const std::string scenario = folder.write("scenario.yaml", kStep);
  const std::filesystem::path out = std::filesystem::path(scenario).parent_path() / "out";
  const Outcome plain = run_moeline({"simulate", scenario, "-o", out.string()});
  REQUIRE(plain.exit_code == 0);
  CHECK(plain.err.find("4 traces in ") != std::string::npos);
  CHECK(plain.err.find("MB of JSON") != std::string::npos);
  const moeline::Trace phases = moeline::read_trace(out / "traces/rank_3.json");
  REQUIRE(run_moeline({"simulate", scenario, "-o", out.string(), "--gzip", "--trace-ranks", "3"}).exit_code == 0);
  const moeline::Trace packed = moeline::read_trace(out / "traces/rank_3.json.gz");
  CHECK(packed.gpu_events.size() == phases.gpu_events.size());
  REQUIRE(run_moeline({"simulate", scenario, "--trace", (out / "all.json.gz").string(), "--trace-level", "operator"})
              .exit_code == 0);
  const moeline::Trace operators = moeline::read_trace(out / "all.json.gz");
  CHECK(operators.gpu_events.size() > 20 * phases.gpu_events.size());
}

TEST_CASE("compare refuses whole steps") {
  const std::string scenario = moeline::testing::step_scenario().string();
  check_refused({"compare", scenario, scenario}, scenario, "is a whole pipeline; compare knows the phases of one rank");
}

}  // TEST_SUITE("cli/bad_step_scenario")
