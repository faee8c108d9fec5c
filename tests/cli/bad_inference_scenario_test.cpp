// Scenarios of prefill and decode that are wrong: refused at the line of the key, or, where they only do not fit,
// warned about.
#include <rapidjson/document.h>

#include "tests/support/cli.hpp"
#include "tests/support/inference_scenarios.hpp"

TEST_SUITE("cli/bad_inference_scenario") {

using namespace moeline::testing;

TEST_CASE("the scenarios that the cases change are valid") {
  for (const std::string& scenario : {kDecode, kPrefill}) {
    const Outcome outcome = simulate_text(scenario);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
  }
}

TEST_CASE("a schedule of another phase is refused at the phase") {
  check_changes_of(kDecode,
                   {{"decode-two-batch", "prefill-two-batch", 8, "workload.phase 'decode' does not go with the"},
                    {"phase: decode", "phase: mixed", 8, "'mixed' does not go with the schedule decode-two-batch"},
                    {"decode-two-batch", "dualpipe-chunk", 8, "schedule dualpipe-chunk, which is for train"},
                    {"decode-two-batch", "decode-two-batches", 6, "did you mean 'decode-two-batch'?"},
                    {"phase: decode", "phase: decoding", 8, "workload.phase has an unknown value 'decoding'"}});
  check_changes_of(kPrefill, {{"prefill-two-batch", "decode-two-batch", 8, "which is for decode"},
                              {"prefill-two-batch", "prefill", 6, "names an unknown schedule 'prefill'"}});
}

TEST_CASE("keys of another phase are refused, not ignored") {
  check_changes_of(kDecode, {{"kv_len: 4096", "kv_len: 4096, tokens: 64", 8, "unknown key 'workload.tokens'"},
                             {"kv_len: 4096", "kv_len: 4096, prompt_len: 64", 8, "unknown key 'workload.prompt_len'"},
                             {"kv_len: 4096", "kv_len: 4096, seq_len: 64", 8, "unknown key 'workload.seq_len'"},
                             {"kv_len_spread", "kv_len_spred", 8, "did you mean 'workload.kv_len_spread'?"},
                             {"low_latency}", "low_latency, num_sms: 132}", 10, "comm.num_sms must be from 0 to 131"},
                             {"distribution: balanced", "distribution: given", 11, "'given' is not modelled"},
                             {"distribution: balanced", "rows: {forward: [1]}", 11, "routing.rows belongs to"}});
  check_changes_of(kPrefill, {{"tokens: 16384", "batch_size: 64", 8, "unknown key 'workload.batch_size'"},
                              {"tokens: 16384,", "tokens: 16384, kv_len: 64,", 8, "unknown key 'workload.kv_len'"},
                              {"cached_len: 0", "query_len: 1", 9, "unknown key 'workload.query_len'"},
                              {"cached_len: 0", "cache_len: 0", 9, "did you mean 'workload.cached_len'?"}});
  check_changes({{"  distribution: given\n", "  distribution: given\n  redundant_experts: 64\n", 11,
                  "routing.redundant_experts belongs to prefill and decode"}});
}

TEST_CASE("the work of a step must be given and make sense") {
  check_changes_of(
      kDecode, {{"batch_size: 128, ", "", 8, "workload.batch_size or concurrency is needed"},
                {"kv_len: 4096, ", "", 8, "workload.kv_len is missing"},
                {"batch_size: 128", "batch_size: 0", 8, "batch_size must be from 1 to 1048576, not 0"},
                {"batch_size: 128", "batch_size: -128", 8, "batch_size must be from 1 to 1048576, not -128"},
                {"batch_size: 128", "batch_size: 1048577", 8, "batch_size must be from 1 to 1048576"},
                {"batch_size: 128", "batch_size: 1e3", 8, "batch_size must be a whole number, not '1e3'"},
                {"batch_size: 128", "batch_size: 1", 8, "batch_size must be at least 2: one for each micro-batch"},
                {"kv_len: 4096", "kv_len: 0", 8, "kv_len must be from 1 to 16777216, not 0"},
                {"kv_len: 4096", "kv_len: 16777217", 8, "kv_len must be from 1 to 16777216, not 16777217"},
                {"kv_len: 4096", "kv_len: 1", 8, "kv_len counts the new tokens: 1 is below query_len, 2"},
                {"kv_len_spread: 100", "kv_len_spread: -1", 8, "kv_len_spread must be from 0 to 40960, not -1"},
                {"kv_len_spread: 100", "kv_len_spread: 40961", 8, "kv_len_spread must be from 0 to 40960"},
                {"kv_len_spread: 100", "kv_len_spread: .nan", 8, "kv_len_spread must be a number"},
                {"query_len: 2", "query_len: 0", 9, "query_len must be from 1 to 16, not 0"},
                {"query_len: 2", "query_len: 17", 9, "query_len must be from 1 to 16, not 17"},
                {"mtp_acceptance: 0.8", "mtp_acceptance: 1.01", 9, "mtp_acceptance must be from 0 to 1, not 1.01"},
                {"mtp_acceptance: 0.8", "mtp_acceptance: -0.1", 9, "mtp_acceptance must be from 0 to 1"},
                {"query_len: 2", "query_len: 1", 9, "mtp_acceptance does not apply: query_len 1 drafts no tokens"}});
  check_changes_of(kPrefill, {{"tokens: 16384,", "", 8, "workload.tokens is missing"},
                              {"prompt_len: 4096, ", "", 8, "workload.prompt_len is missing"},
                              {"tokens: 16384", "tokens: 0", 8, "tokens must be from 1 to 16777216, not 0"},
                              {"tokens: 16384", "tokens: -1", 8, "tokens must be from 1 to 16777216, not -1"},
                              {"tokens: 16384", "tokens: 16777217", 8, "tokens must be from 1 to 16777216"},
                              {"tokens: 16384", "tokens: 99999999999999999999", 8, "tokens must be"},
                              {"tokens: 16384", "tokens: 1", 8, "tokens must be at least 2: one for each micro-batch"},
                              {"prompt_len: 4096", "prompt_len: 0", 9, "prompt_len must be from 1"},
                              {"prompt_len: 4096", "prompt_len: 20000000", 9, "prompt_len must be from 1"},
                              {"cached_len: 0", "cached_len: -1", 9, "cached_len must be from 0"},
                              {"cached_len: 0", "cached_len: 4096", 9, "cached_len must be below prompt_len: 4096"},
                              {"cached_len: 0", "cached_len: 5000", 9, "cached_len must be below prompt_len: 5000"}});
}

TEST_CASE("parallelism that the model or the machine cannot have is refused") {
  check_changes_of(
      kDecode,
      {{"tp: 1", "tp: 3", 7, "parallelism.tp must divide the 128 attention heads: 3 does not; possible near it: 2, 4"},
       {"pp: 1", "pp: 2", 7, "parallelism.pp above 1 goes with the schedule sequential, not with decode-two-batch"},
       {"ep: 128, dp: 128", "ep: 96, dp: 96", 7, "ep must divide the 256 routed experts: 96 does not"},
       {"ep: 128, dp: 128", "ep: 1, dp: 1", 10, "comm.mode low_latency, has nobody to send to"},
       {"ep: 128, dp: 128", "ep: 1048576", 7, "ep must divide the 256 routed experts: 1048576 does not"},
       {"ep: 128", "ep: 256", 7, "ep must divide tp x dp: 256 does not divide 128"},
       {"dp: 128", "dp: 1048577", 7, "dp must be from 1 to 1048576, not 1048577"},
       {"redundant_experts: 0", "redundant_experts: 16", 7,
        "ep must divide the 256 routed and 16 redundant experts: 128 does not"},
       {"redundant_experts: 0", "redundant_experts: -1", 11, "redundant_experts must be from 0 to 65536"},
       {"placement: static", "placement: epbl", 11, "did you mean 'eplb'?"}});
  check_changes_of(replaced(kDecode, "redundant_experts: 0", "redundant_experts: 32"),
                   {{"ep: 128, dp: 128", "ep: 12, dp: 12", 7, "ep must fill whole nodes of 8 GPUs, or fit into one"}});
}

TEST_CASE("communication that the phase does not have is refused") {
  check_changes_of(kDecode,
                   {{"mode: low_latency", "mode: normal", 10, "'normal' is not modelled; there is: low_latency"},
                    {"mode: low_latency", "mode: low-latency", 10, "did you mean 'low_latency'?"},
                    {"launch: graph", "launch: grahp", 13, "did you mean 'graph'?"}});
  check_changes_of(kPrefill, {{"mode: normal", "mode: low_latency", 10, "'low_latency' is not modelled"},
                              {"num_sms: 24", "num_sms: 0", 10, "comm.num_sms must be from 1 to 131, not 0"},
                              {"num_sms: 24", "num_sms: 132", 10, "comm.num_sms must be from 1 to 131, not 132"}});
}

TEST_CASE("a model that the phase is not made for is refused") {
  check_changes_of(
      kDecode, {{"deepseek-v3", "llama-3.1-405b", 11, "routing does not apply: 'llama-3.1-405b' has no routed experts"},
                {"deepseek-v3", "deepseek-v4", 2, "did you mean 'deepseek-v"}});
  check_changes({{"deepseek-v3", "qwen3-next-80b-a3b", 2, "training is not modelled for linear attention"},
                 {"deepseek-v3", "gpt-oss-120b", 2,
                  "has weights in mxfp4, and training is modelled in BF16 and block-scaled FP8"}});
}

TEST_CASE("price --strict passes what was measured and fails what was not") {
  CHECK(run_moeline({"price", "h800", "gemm:m=4096,n=4096,k=7168", "--strict"}).exit_code == 0);
  CHECK(run_moeline({"price", "h800", "gemm:m=4096,n=4096,k=7168", "gemm:m=16", "--strict"}).exit_code == 1);
}

TEST_CASE("a machine without kernel sets of its own is priced by those it carries over, every price extrapolated") {
  for (const char* machine : {"h20", "b300", "gb300-nvl72"}) {
    CAPTURE(machine);
    const Outcome outcome = run_moeline({"price", machine, "gemm", "gemm:dtype=bf16", "mla_decode", "dispatch:ep=64",
                                         "dispatch:mode=low_latency,ep=64,tokens=64", "--format", "json"});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("\"extrapolated\"") != std::string::npos);
    CHECK(outcome.out.find("\"interpolated\"") == std::string::npos);
    CHECK(outcome.out.find("\"measured\"") == std::string::npos);
    CHECK(run_moeline({"price", machine, "gemm", "--strict"}).exit_code == 1);
  }
}

TEST_CASE("a machine without FP8 tensor cores prices BF16 and refuses FP8") {
  CHECK(run_moeline({"price", "a100", "gemm:dtype=bf16"}).exit_code == 0);
  check_refused({"price", "a100", "gemm"}, "", "is an FP8 kernel, and the machine has no FP8 tensor cores");
  const std::string decode = (moeline::home() / "experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  check_refused({"simulate", decode, "--set", "hardware=a100"}, decode + ": ", "has no FP8 tensor cores");
  const Outcome outcome =
      run_moeline({"simulate", decode, "--set", "hardware=a100", "--set", "model=mixtral-8x7b", "--set",
                   "parallelism={tp: 1, pp: 1, ep: 8, dp: 8}", "--set", "kernels=open-2025-late"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("absurd sizes end, in a result or in one line") {
  const std::string decode = "workload={phase: decode, batch_size: 1048576, kv_len: 16777216, query_len: 16}";
  const std::string prefill = "workload={phase: prefill, tokens: 16777216, prompt_len: 16777216}";
  const std::string chunked = "workload={phase: prefill, tokens: 2, prompt_len: 16777216}";
  const std::string far = "hardware.nic_GBps=0.001";
  const auto ends = [](const std::string& scenario, const std::vector<std::string>& settings, int exit_code) {
    Arguments more = {"--format", "csv"};
    for (const std::string& setting : settings) more.insert(more.end(), {"--set", setting});
    const Outcome outcome = simulate_text(scenario, more);
    CAPTURE(joined(more));
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK(outcome.out.empty() == (exit_code != 0));
    if (exit_code != 0) CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  };
  ends(kDecode, {decode}, 0);
  ends(kDecode, {decode, "layers=5000"}, 3);
  ends(kDecode, {decode, "hardware.bf16_tflops=0.001"}, 3);
  ends(kDecode, {far, "layers=5000"}, 0);
  ends(kDecode, {"routing.redundant_experts=65280", "parallelism={ep: 65536, dp: 1048576}"}, 0);
  ends(kPrefill, {prefill, "layers=5000"}, 3);
  ends(kPrefill, {chunked, "layers=all"}, 0);
  ends(kPrefill, {far, prefill}, 0);
  ends(kPrefill, {"hardware.nic_latency_us=1000000", "layers=5000"}, 0);
}

TEST_CASE("a model that does not fit is a warning that names the terms, --strict fails") {
  const Arguments small = {"--set", "hardware.memory_gib=16"};
  const Outcome warned = simulate_text(kDecode, small);
  CHECK(warned.exit_code == 0);
  CHECK_FALSE(warned.out.empty());
  for (const char* term : {"moeline: warning: does not fit: ", " GiB per GPU (weights ", "KV cache ", "activations ",
                           "communication buffers ", "and the GPU has 16\n"}) {
    CHECK_MESSAGE(warned.err.find(term) != std::string::npos, term);
  }
  Arguments strict = small;
  strict.emplace_back("--strict");
  CHECK(simulate_text(kDecode, strict).exit_code == 1);
  rapidjson::Document result;
  const Outcome json = simulate_text(kDecode, {"--set", "hardware.memory_gib=16", "--format", "json"});
  REQUIRE_FALSE(result.Parse(json.out.c_str()).HasParseError());
  CHECK(result["metrics"]["memory_gib"].GetDouble() > 16);
  CHECK(simulate_text(kDecode).err.find("does not fit") == std::string::npos);
}

}  // TEST_SUITE("cli/bad_inference_scenario")
