// moeline hardware derive: a machine that nobody has measured.
#include "hardware/derive.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hardware/left_out.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("hardware/derive") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kDecodeStep =
    "schema: 1\nmodel: deepseek-v3\nhardware: MACHINE\nschedule: sequential\nparallelism: {ep: 8}\n"
    "workload: {phase: decode, batch_size: 32, kv_len: 4096}\n";
const std::string kPrefillStep =
    "schema: 1\nmodel: qwen3-235b-a22b\nhardware: MACHINE\nschedule: sequential\nparallelism: {tp: 8, ep: 8}\n"
    "workload: {phase: prefill, tokens: 8192, prompt_len: 4096}\n";

// The ten facts that no machine is without, of a GPU with a Hopper's SMs.
const std::string kTenFacts =
    "name: mine\nfacts:\n"
    "  sms: {value: 132, source: mine}\n  sm_clock_mhz: {value: 1830, source: mine}\n"
    "  fp8_tflops: {value: 1979, source: mine}\n  bf16_tflops: {value: 989, source: mine}\n"
    "  hbm_GBps: {value: 6000, source: mine}\n  nvlink_GBps: {value: 450, source: mine}\n"
    "  nic_GBps: {value: 100, source: mine}\n  gpus_per_node: {value: 8, source: mine}\n"
    "  memory_gib: {value: 180, source: mine}\n  nic_latency_us: {value: 3.7, source: mine}\n";

double step_ms(const std::string& scenario, const std::string& machine, const std::vector<std::string>& set = {}) {
  Arguments arguments = {"--format", "json"};
  for (const std::string& assignment : set) arguments.insert(arguments.end(), {"--set", assignment});
  const Outcome run = simulate_text(replaced(scenario, "MACHINE", machine), arguments);
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  return parsed(run.out)["metrics"]["step_ms"].GetDouble();
}

}  // namespace

TEST_CASE("a machine on its own kernels is itself, to the last digit") {
  const TemporaryFolder folder;
  for (const char* name : {"h200", "b200", "a100"}) {
    const std::string file = folder / (std::string(name) + "-again.yaml");
    REQUIRE(run_moeline({"hardware", "derive", name, "--like", name, "-o", file}).exit_code == 0);
    CHECK(step_ms(kPrefillStep, file) == step_ms(kPrefillStep, name));
  }
}

TEST_CASE("ten facts are a machine that decodes: of the nearest that was measured, and twice written the same") {
  const TemporaryFolder folder;
  const std::string facts = folder.write("facts.yaml", kTenFacts), machine = folder / "machine.yaml";
  const Outcome outcome = run_moeline({"hardware", "derive", facts, "-o", machine});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("kernels of h200, the nearest machine that was measured") != std::string::npos);
  const std::string written = content_of(machine);
  CHECK(run_moeline({"hardware", "derive", facts, "-o", machine}).exit_code == 0);
  CHECK(content_of(machine) == written);
  const double ms = step_ms(kDecodeStep, machine);
  CHECK(ms < step_ms(kDecodeStep, "h200"));        // 6000 GB/s, not 4800
  CHECK(ms > 0.8 * step_ms(kDecodeStep, "h200"));  // 4800 / 6000
}

TEST_CASE("of each generation the nearest is of its own, and an older one serves a newer where there is none") {
  CHECK(nearest_measured(load_profile("b300")) == "b200");
  CHECK(nearest_measured(load_profile("h20")) == "h100");
  CHECK(nearest_measured(load_profile("vr200-nvl72")) == "gb200-nvl72");
  CHECK_THROWS_WITH_AS((void)nearest_measured(load_profile("mi300x")), doctest::Contains("--like names one"),
                       SpecError);
}

TEST_CASE("facts that are missing, or contradict each other, are asked for by name") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& says) {
    const std::string file = folder.write("facts.yaml", replaced(kTenFacts, from, to));
    check_refused({"hardware", "derive", file}, file, says);
  };
  refused("  hbm_GBps: {value: 6000, source: mine}\n", "", "hbm_GBps");
  refused("sms: {value: 132", "sms: {value: 160", "fp8_tflops, sms and sm_clock_mhz contradict each other");
  refused("fp8_tflops: {value: 1979", "fp8_tflops: {value: 494", "fp8_tflops 494 and bf16_tflops 989 contradict");
  refused("hbm_GBps", "hbm_GBs", "did you mean 'facts.hbm_GBps'?");
  check_refused({"hardware", "derive", "h200", "--like", "h1000"}, "", "did you mean 'h100'?");
}

TEST_CASE("every machine that we ship has facts that do not contradict each other") {
  for (const std::string& name : names_in("hwprofiles")) {
    CAPTURE(name);
    CHECK_NOTHROW(check_facts(load_profile(name)));
  }
}

TEST_CASE("no fact that improves makes a step of Vera Rubin slower by more than 1 %") {
  for (const std::string& scenario : {kDecodeStep, kPrefillStep}) {
    const double as_is = step_ms(scenario, "vr200-nvl72");
    for (const char* better : {"hbm_GBps=44000", "nvlink_GBps=3600", "nic_GBps=200", "memory_gib=576",
                               "fp8_tflops=35000", "bf16_tflops=8000", "nvlink_latency_us=1.6", "sm_clock_mhz=2600"}) {
      CAPTURE(better);
      CHECK(step_ms(scenario, "vr200-nvl72", {std::string("hardware.") + better}) < 1.01 * as_is);
    }
  }
}

TEST_CASE("a step by another machine's kernels says how far such steps have been off, one by its own does not") {
  const auto simulated = [](const std::string& machine, const std::string& scenario) {
    return simulate_text(replaced(scenario, "MACHINE", machine), {"--format", "json"});
  };
  const Outcome rubin = simulated("vr200-nvl72", kDecodeStep);
  const auto json = parsed(rubin.out);
  REQUIRE(json.HasMember("carried_over"));
  CHECK(json["carried_over"]["kin"] == "faster tensor cores");
  const auto error = left_out_error(Kin::faster_tensor_cores, "decode step");
  REQUIRE(error.has_value());
  CHECK(json["carried_over"]["left_out"]["cases"].GetInt() == error->cases);
  CHECK(rubin.err.find("decode steps of measured machines that were left out and derived so") != std::string::npos);
  CHECK_FALSE(parsed(simulated("h200", kDecodeStep).out).HasMember("carried_over"));
  const Outcome amd = simulated("mi355x", kPrefillStep);
  CHECK(amd.err.find("no measured machine was left out and derived so") != std::string::npos);
}

TEST_CASE("the nearer two machines are, the nearer a derived one comes to the other's own kernels") {
  for (const char* what : {"decode step", "prefill step", "gemm_bf16", "attention_forward"}) {
    CAPTURE(what);
    const auto same = left_out_error(Kin::same_tensor_cores, what),
               faster = left_out_error(Kin::faster_tensor_cores, what);
    REQUIRE(same.has_value());
    REQUIRE(faster.has_value());
    CHECK(same->median_abs_error < faster->median_abs_error);
  }
}

}  // TEST_SUITE("hardware/derive")
