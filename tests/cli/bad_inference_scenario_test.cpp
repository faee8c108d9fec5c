// Scenarios of prefill and decode that are wrong: refused at the line of the key, or, where they only do not fit,
// warned about.
#include <rapidjson/document.h>

#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

using namespace moeline::testing;

namespace {

const std::string kHead =
    "schema: 1\n"                  // 1
    "model: deepseek-v3\n"         // 2
    "hardware: h800\n"             // 3
    "kernels: deepseek-2025-02\n"  // 4
    "layers: 4\n";                 // 5

const std::string kDecode = kHead +
                            "schedule: decode-two-batch\n"                                                    // 6
                            "parallelism: {tp: 1, pp: 1, ep: 128, dp: 128}\n"                                 // 7
                            "workload: {phase: decode, batch_size: 128, kv_len: 4096, kv_len_spread: 100,\n"  // 8
                            "           query_len: 2, mtp_acceptance: 0.8}\n"                                 // 9
                            "comm: {mode: low_latency}\n"                                                     // 10
                            "routing: {distribution: balanced, redundant_experts: 0, placement: static}\n"    // 11
                            "overlap: default\n"                                                              // 12
                            "launch: graph\n";                                                                // 13

const std::string kPrefill = kHead +
                             "schedule: prefill-two-batch\n"                              // 6
                             "parallelism: {tp: 1, pp: 1, ep: 32, dp: 32}\n"              // 7
                             "workload: {phase: prefill, tokens: 16384,\n"                // 8
                             "           prompt_len: 4096, cached_len: 0}\n"              // 9
                             "comm: {mode: normal, num_sms: 24}\n"                        // 10
                             "routing: {distribution: balanced, redundant_experts: 0}\n"  // 11
                             "overlap: default\n";                                        // 12

void check_changes_of(const std::string& scenario, const std::vector<TextChange>& changes) {
  for (const auto& [from, to, line, says] : changes) {
    check_scenario_refused(replaced(scenario, from, to), line, says);
  }
}

Outcome simulate(const std::string& scenario, const Arguments& more = {}) {
  const TemporaryFolder folder;
  Arguments arguments = {"simulate", folder.write("scenario.yaml", scenario)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_moeline(arguments);
}

// A file beside a scenario that names it.
void check_file_refused(const std::string& scenario, const std::string& key, const std::string& content, int line,
                        const std::string& says) {
  const TemporaryFolder folder;
  const std::string file = folder.write("named.yaml", content);
  const std::string place = line > 0 ? file + ":" + std::to_string(line) + ": " : file + ": ";
  check_refused({"simulate", folder.write("scenario.yaml", scenario), "--set", key + "=" + file}, place, says);
}

std::string installed(const std::string& path) { return content_of(source(path)); }

// An installed file without its comments, so that lines are few.
std::string plan(const std::string& schedule) {
  std::string text;
  std::istringstream lines(installed("schedules/" + schedule + ".yaml"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) text += line + "\n";
  }
  return text;
}

// Every line that begins with these words is left out.
std::string without(const std::string& text, const std::string& words) {
  std::string rest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos || line.compare(at, words.size(), words) != 0) rest += line + "\n";
  }
  return rest;
}

}  // namespace

TEST_CASE("the scenarios that the cases change are valid") {
  for (const std::string& scenario : {kDecode, kPrefill}) {
    const Outcome outcome = simulate(scenario);
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
      kDecode, {{"batch_size: 128, ", "", 8, "workload.batch_size is missing"},
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

TEST_CASE("a plan of decode is refused at its own line") {
  const std::string decode = plan("decode-two-batch");
  const auto refused = [&](const std::string& changed, int line, const std::string& says) {
    check_file_refused(kDecode, "overlap", changed, line, says);
  };
  const auto changed = [&](const char* from, const char* to, const std::string& says) {
    refused(replaced(decode, from, to), 1, says);
  };
  changed("  - receive dispatch 0\n", "", "compute and communication lack phase 'receive dispatch 0'");
  changed("  - issue combine 1\n", "", "compute and communication lack phase 'issue combine 1'");
  changed("mlp 0", "mlp 1", "compute repeats phase 'mlp 1', which stands in compute");
  changed("mlp 0", "mpl 0", "compute names an unknown phase 'mpl 0'; did you mean 'mlp 0'?");
  changed("mlp 0", "mlp 2", "unknown phase 'mlp 2'; did you mean 'mlp 0'?");
  changed("mlp 0", "mlp 01", "unknown phase 'mlp 01'; did you mean 'mlp 0'?");
  changed("mlp 0", "mlp", "unknown phase 'mlp'; did you mean 'mlp 0'?");
  changed("mlp 0", "mlp 1 0", "unknown phase 'mlp 1 0'; did you mean");
  changed("mlp 0", "issue mlp 0", "unknown phase 'issue mlp 0'");
  changed("next attn-0 0", "next next attn-0 0", "unknown phase 'next next attn-0 0'");
  changed("next attn-0 0", "attn-0 0 next", "unknown phase 'attn-0 0 next'");
  changed("issue dispatch 0", "dispatch 0", "unknown phase 'dispatch 0'");
  changed("receive dispatch 0", "receive issue dispatch 0", "did you mean 'receive dispatch 0'?");
  changed("issue dispatch 0", "previous issue dispatch 0", "has 'receive dispatch 0' before 'issue dispatch 0'");
  const std::string swapped = replaced(replaced(decode, "issue dispatch 0", "receive dispatch 0"),
                                       "shared 0\n  - attn-0 1\n  - receive", "shared 0\n  - attn-0 1\n  - issue");
  refused(swapped, 1, "compute has 'receive dispatch 0' before 'issue dispatch 0'");
  refused(replaced(decode, "  - issue dispatch 0\n", "") + "communication: [issue dispatch 0]\n", 17,
          "communication has 'issue dispatch 0', whose kernels run on the compute stream");
  refused(decode + "side: [mlp]\n", 18, "side has 'mlp': only weight gradients are independent kernels");
  refused("compute: []\n", 1, "compute and communication lack phase 'attn-0 0'");
  refused("compute: mlp 0\n", 1, "compute must be a list, not 'mlp 0'");
  refused("communication: [mlp 0]\n", 1, "compute is missing");
  refused(plan("prefill-two-batch"), 1, "unknown phase 'attn 1'; did you mean 'attn-0 1'?");
  refused(replaced(decode, "next attn-1 0", "previous attn-1 0"), 0, "this order cannot run: ");
}

TEST_CASE("pieces are refused where nothing is cut, or not so") {
  const std::string single = replaced(kDecode, "decode-two-batch", "per-expert");
  const std::string expert = plan("per-expert");
  const auto refused = [&](const char* from, const char* to, int line, const std::string& says) {
    check_file_refused(single, "overlap", replaced(expert, from, to), line, says);
  };
  refused("pieces: 2", "pieces: 0", 1, "pieces must be from 1 to 64, not 0");
  refused("pieces: 2", "pieces: 65", 1, "pieces must be from 1 to 64, not 65");
  refused("pieces: 2\n", "", 1, "pieces_by needs the key 'pieces'");
  refused("pieces_by: expert", "pieces_by: experts", 2, "has an unknown value 'experts'; did you mean 'expert'?");
  refused("pieces_by", "piece_by", 2, "unknown key 'piece_by'; did you mean 'pieces_by'?");
  refused("- shared\n  - [", "- [shared, ", 3,
          "compute has 'shared' in brackets, which are for what has pieces: dispatch, mlp, combine");
  refused("[receive dispatch, mlp, issue combine]", "[receive dispatch, [mlp, issue combine]]", 3,
          "compute must list plain words, and lists of them");
  refused("[receive dispatch, mlp, issue combine]", "[mlp, issue combine]", 3, "lack phase 'receive dispatch'");
  refused("[receive dispatch, mlp, issue combine]", "[mlp, receive dispatch, issue combine]", 0,
          "this order cannot run: ");
  refused("pieces: 2", "pieces: 64", 0, "pieces: 64 are more than the 2 experts of a rank");
  check_file_refused(kPrefill, "overlap", plan("prefill-two-batch") + "pieces: 2\npieces_by: expert\n", 4,
                     "pieces_by expert, is for the low-latency all-to-all");
  check_file_refused(kScenario, "overlap", plan("dualpipe-chunk") + "pieces: 2\n", 4,
                     "pieces are of prefill and decode; a chunk of training has none yet");
}

TEST_CASE("SMs for a combine are those of a plan that may release it") {
  const std::string single = replaced(kDecode, "decode-two-batch", "single-batch");
  const auto simulated = [&](const std::string& scenario, const std::string& sms) {
    const TemporaryFolder folder;
    return run_moeline({"simulate", folder.write("scenario.yaml", scenario), "--set", "comm.num_sms=" + sms});
  };
  for (const char* sms : {"0", "3", "131"}) CHECK(simulated(single, sms).exit_code == 0);
  for (const char* sms : {"-1", "132"}) CHECK(simulated(single, sms).exit_code == 3);
  CHECK(simulated(replaced(kDecode, "decode-two-batch", "sequential"), "3").exit_code == 3);
}

TEST_CASE("a plan of prefill or training is refused at its own line") {
  const std::string prefill = plan("prefill-two-batch");
  const auto refused = [&](const char* from, const char* to, int line, const std::string& says) {
    check_file_refused(kPrefill, "overlap", replaced(prefill, from, to), line, says);
  };
  refused(", shared 1", "", 1, "compute and communication lack phase 'shared 1'");
  refused("dispatch 1", "issue dispatch 1", 2, "communication names an unknown phase 'issue dispatch 1'");
  refused("dispatch 1", "dispatch 0", 2, "communication repeats phase 'dispatch 0'");
  refused("dispatch 1", "attn 0", 2, "communication repeats phase 'attn 0', which stands in compute");
  refused("[attn 1", "[next attn 1", 0, "this order cannot run: tasks wait for each other in a circle");
  const std::string chunk = plan("dualpipe-chunk");
  check_file_refused(kScenario, "overlap", replaced(chunk, "attn(F)", "next attn(F)"), 1,
                     "compute has 'attn(F)' of another layer: that is for two micro-batches");
  check_file_refused(kScenario, "overlap", replaced(chunk, "attn(F)", "attn(F) 1"), 1, "did you mean 'attn(F)'?");
}

TEST_CASE("phases that a model does not have are still checked where a plan names them") {
  const std::string scenario = replaced(kDecode, "deepseek-v3", "qwen3-235b-a22b");
  const std::string decode = plan("decode-two-batch");
  check_file_refused(scenario, "overlap", replaced(decode, "shared 0", "shared 7"), 1, "did you mean 'shared 0'?");
  check_file_refused(scenario, "overlap", replaced(decode, "shared 0", "shared 1"), 1, "repeats phase 'shared 1'");
  CHECK(simulate(scenario).exit_code == 0);
}

TEST_CASE("an overlap plan that is not there, or does not apply, is refused at overlap") {
  check_changes_of(kDecode, {{"overlap: default", "overlap: plan.yaml", 12, "overlap 'plan.yaml': no such file"},
                             {"overlap: default", "overlap: [mlp]", 12, "overlap must be a single value, not a list"}});
  check_scenario_refused(
      replaced(replaced(kDecode, "decode-two-batch", "sequential"), "overlap: default", "overlap: plan.yaml"), 12,
      "overlap does not apply to the schedule sequential");
}

TEST_CASE("a kernel set or profile that is not there is named") {
  check_changes_of(kDecode,
                   {{"deepseek-2025-02", "deepseek-2025-20", 4, "did you mean 'deepseek-2025-02'?"},
                    {"deepseek-2025-02", "late", 4, "there is: deepseek-2025-02, open-2025-05, open-2025-late"},
                    {"h800", "h80", 3, "names an unknown hardware 'h80'; did you mean 'h800'?"}});
  const std::string profile = installed("hwprofiles/h800.yaml");
  const std::string name = "name: h800\n";
  const auto carried = [&](const std::string& from, const std::string& says) {
    check_file_refused(kDecode, "hardware", replaced(profile, name, name + "carried_over_from: " + from + "\n"), 2,
                       says);
  };
  carried("h80", "carried_over_from names an unknown hardware 'h80'; did you mean 'h800'?");
  carried("./none.yaml", "carried_over_from names an unknown hardware './none.yaml': no such file");
  carried("[h800]", "carried_over_from must be a single value, not a list");
  carried("", "carried_over_from must be a single value, not nothing");
}

TEST_CASE("a part of a group of constants is refused, a whole group absent is said") {
  const std::string profile = installed("hwprofiles/h800.yaml");
  const TemporaryFolder folder;
  const std::string partial = folder.write("partial.yaml", without(profile, "low_latency.startup_us"));
  check_refused({"price", partial, "gemm"}, partial + ":", "constants.low_latency.startup_us is missing");
  const Outcome outcome =
      simulate(kDecode, {"--set", "hardware=" + folder.write("less.yaml", without(profile, "launch."))});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("launch: not in the kernel set") != std::string::npos);
}

TEST_CASE("profiles that carry over from each other are refused") {
  const TemporaryFolder folder;
  const std::string profile = installed("hwprofiles/h800.yaml");
  const auto carrying = [&](const std::string& name, const std::string& from) {
    return folder.write(name, replaced(profile, "name: h800\n", "name: h800\ncarried_over_from: " + from + "\n"));
  };
  const std::string self = carrying("self.yaml", "self.yaml");
  check_refused({"price", self, "gemm"}, self + ":2: ", "carried_over_from 'self.yaml' carries over from here");
  const std::string second = carrying("second.yaml", "first.yaml");
  const std::string first = carrying("first.yaml", "second.yaml");
  check_refused({"price", first, "gemm"}, second + ":2: ", "carried_over_from 'first.yaml' carries over from here");
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
  const std::string decode = (moeline::home() / "experiments/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
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
    const Outcome outcome = simulate(scenario, more);
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
  const Outcome warned = simulate(kDecode, small);
  CHECK(warned.exit_code == 0);
  CHECK_FALSE(warned.out.empty());
  for (const char* term : {"moeline: warning: does not fit: ", " GiB per GPU (weights ", "KV cache ", "activations ",
                           "communication buffers ", "and the GPU has 16\n"}) {
    CHECK_MESSAGE(warned.err.find(term) != std::string::npos, term);
  }
  Arguments strict = small;
  strict.emplace_back("--strict");
  CHECK(simulate(kDecode, strict).exit_code == 1);
  rapidjson::Document result;
  const Outcome json = simulate(kDecode, {"--set", "hardware.memory_gib=16", "--format", "json"});
  REQUIRE_FALSE(result.Parse(json.out.c_str()).HasParseError());
  CHECK(result["metrics"]["memory_gib"].GetDouble() > 16);
  CHECK(simulate(kDecode).err.find("does not fit") == std::string::npos);
}

TEST_CASE("a refused plan leaves no output behind") {
  const TemporaryFolder target;
  const std::string bad = target.write("plan.yaml", "compute: [mlp 0]\n");
  const std::string scenario = target.write("scenario.yaml", kDecode);
  check_refused({"simulate", scenario, "--set", "overlap=" + bad, "-o", target / "run", "--trace", target / "t.json"},
                bad + ":1: ", "lack phase");
  CHECK(std::distance(std::filesystem::directory_iterator(target.path()), {}) == 2);
}
