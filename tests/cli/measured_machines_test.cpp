// Machines that rest on kernels measured on them: ordinary prefill and decode within a node pass --strict.
#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("cli/measured_machines") {

using namespace moeline::testing;

namespace {

std::string scenario(const std::string& hardware, const std::string& workload, const std::string& more = "") {
  return "schema: 1\nmodel: deepseek-v3\nhardware: " + hardware +
         "\nschedule: sequential\nparallelism: {ep: 8}\nlayers: 2\nworkload: " + workload + "\n" + more;
}

const std::string kDecode = "{phase: decode, batch_size: 64, kv_len: 4096}";
const std::string kPrefill = "{phase: prefill, tokens: 8192, prompt_len: 4096}";

}  // namespace

TEST_CASE("decode and prefill of DeepSeek-V3 on eight B200 or H200 rest on that machine's kernels alone") {
  const TemporaryFolder folder;
  for (const std::string machine : {"b200", "h200"}) {
    for (const std::string& workload : {kDecode, kPrefill}) {
      CAPTURE(machine);
      CAPTURE(workload);
      const std::string file = folder.write("scenario.yaml", scenario(machine, workload));
      CHECK(run_moeline({"simulate", file, "--strict"}).exit_code == 0);
      const Outcome outcome = run_moeline({"simulate", file, "--format", "json"});
      const rapidjson::Document json = parsed(outcome.out);
      CHECK(std::string(json["scenario"]["kernels"].GetString()) == "sglang-0.5.14");
      for (const auto& use : json["provenance"].GetArray()) {
        const std::string family = use["family"].GetString();
        if (family == "wait_for_slowest_rank") continue;  // an expectation, of no kernel
        CHECK(std::string(use["provenance"].GetString()) != "extrapolated");
      }
    }
  }
}

TEST_CASE("a stack's name is enough for its newest set, and an unknown one is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.write("scenario.yaml", scenario("b200", kDecode, "kernels: trtllm\n"));
  const Outcome outcome = run_moeline({"simulate", file, "--format", "json"});
  CHECK(outcome.out.find("\"kernels\": \"trtllm-1.3.0\"") != std::string::npos);
  check_refused({"simulate", file, "--set", "kernels=vlm"}, "--set", "unknown kernel set of b200 'vlm'");
}

TEST_CASE("precision replaces the checkpoint's formats in prices and in memory") {
  const TemporaryFolder folder;
  const std::string file = folder.write("scenario.yaml", scenario("b200", kDecode));
  const auto metric = [&](const Arguments& sets, const char* name) {
    Arguments call = {"simulate", file, "--format", "json"};
    for (const std::string& set : sets) call.insert(call.end(), {"--set", set});
    return parsed(run_moeline(call).out)["metrics"][name].GetDouble();
  };
  CHECK(metric({"precision.kv_cache=fp8"}, "memory_gib") < metric({}, "memory_gib"));
  CHECK(metric({"precision.experts=nvfp4"}, "memory_gib") < metric({}, "memory_gib"));
  CHECK(metric({"precision.linear=bf16"}, "memory_gib") > metric({}, "memory_gib"));
  CHECK(metric({"precision.linear=bf16"}, "layer_us") != metric({}, "layer_us"));
  CHECK(metric({"precision.linear=checkpoint"}, "layer_us") == metric({}, "layer_us"));
  check_refused({"simulate", file, "--set", "precision.linear=int4"}, "--set",
                "precision.linear has an unknown value 'int4'");
  check_refused({"simulate", file, "--set", "precision.attention=fp8"}, "--set", "unknown key 'precision.attention'");
  check_refused({"simulate", file, "--set", "precision.linear=fp8", "--set", "hardware=a100"}, "--set",
                "no FP8 tensor cores");
}

TEST_CASE("FP4 is refused where there are no FP4 tensor cores") {
  check_refused({"price", "h100", "linear:dtype=nvfp4,m=64,n=4096,k=4096"}, "", "no FP4 tensor cores");
}

TEST_CASE("operands that L2 holds are never dearer than cold ones") {
  for (const std::string op : {"gqa_decode:batch=8,kv_len=1024,heads=32,kv_heads=4", "mla_decode:batch=4,kv_len=1024",
                               "linear:m=64,n=1024,k=1024", "moe:tokens=16,hidden=2048,inter=512,top_k=8,experts=16",
                               "memory:kind=rowwise,bytes=1000000"}) {
    for (const std::string machine : {"h100", "b200"}) {
      CAPTURE(op);
      const auto us = [&](const std::string& l2) {
        const Outcome outcome =
            run_moeline({"price", machine, "--kernels", "sglang", op + ",l2=" + l2, "--format", "json"});
        return parsed(outcome.out)["ops"][0]["solo_us"].GetDouble();
      };
      CHECK(us("hot") <= us("cold"));
    }
  }
}

TEST_CASE("carried-over machines say so") {
  const Outcome outcome = run_moeline({"price", "b300", "linear:dtype=nvfp4,m=64,n=4096,k=4096", "--format", "json"});
  CHECK(outcome.out.find("b200: sglang-0.5.14") != std::string::npos);
  CHECK(outcome.out.find("\"provenance\": \"extrapolated\"") != std::string::npos);
}

}  // TEST_SUITE("cli/measured_machines")
