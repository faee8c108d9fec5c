// Overlap plans that are wrong: refused at their own lines, or by name where an order cannot run.
#include "tests/support/cli.hpp"
#include "tests/support/inference_scenarios.hpp"

TEST_SUITE("cli/bad_overlap_plan") {

using namespace moeline::testing;

namespace {

const std::string kPlan =
    "compute: [attn(F), mlp(B), mlp(W), mlp(F), attn(B), attn(W)]\n"
    "communication: [combine(B), dispatch(F), dispatch(B), combine(F)]\n"
    "side: [mlp(W)]\n";

// An installed file without its comments, so that lines are few.
std::string plan(const std::string& schedule) {
  std::string text;
  std::istringstream lines(installed("schedules/" + schedule + ".yaml"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) text += line + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("an overlap plan is refused at its own line") {
  check_changes_of_named(
      kScenario, "overlap", kPlan,
      {
          {"compute: [attn(F)", "compute: [attn(G)", 1,
           "compute names an unknown phase 'attn(G)'; did you mean 'attn("},
          {"combine(F)", "conbine(F)", 2,
           "communication names an unknown phase 'conbine(F)'; did you mean 'combine(F)'?"},
          {"[mlp(W)]", "[mlp(X)]", 3, "side names an unknown phase 'mlp(X)'; did you mean 'mlp("},
          {"attn(F), ", "", 1, "compute and communication lack phase 'attn(F)'"},
          {"combine(F)", "combine(F), combine(F)", 2, "communication repeats phase 'combine(F)'"},
          {"combine(F)", "combine(F), attn(F)", 2, "repeats phase 'attn(F)', which stands in compute"},
          {"[mlp(W)]", "[dispatch(F)]", 3, "side has 'dispatch(F)': only weight gradients are independent kernels"},
          {"mlp(W), mlp(F), attn(B), attn(W)]\ncommunication: [", "mlp(F), attn(B), attn(W)]\ncommunication: [mlp(W), ",
           3, "side has 'mlp(W)', which is not in compute"},
          {"side", "sides", 3, "unknown key 'sides'; did you mean 'side'?"},
          {"side: [mlp(W)]", "side: mlp(W)", 3, "side must be a list, not 'mlp(W)'"},
          {"side: [mlp(W)]", "side: [[mlp(W)]]", 3, "side must list plain words; it has a list"},
          {"side", "compute", 3, "key 'compute' is repeated"},
          {"communication", "comunication", 2, "unknown key 'comunication'; did you mean 'communication'?"},
      });
}

TEST_CASE("an order of phases that waits for itself is refused, by name of the plan") {
  const ValidScenario valid;
  const auto cannot_run = [&](const std::string& from, const std::string& to) {
    const std::string plan = valid.folder.write("plan.yaml", replaced(kPlan, from, to));
    check_refused(valid.with({"--set", "overlap=" + plan}), plan + ": ", "this order cannot run");
  };
  cannot_run("[attn(F), mlp(B), mlp(W), mlp(F),", "[mlp(F), mlp(B), mlp(W), attn(F),");
  cannot_run("[combine(B), dispatch(F), dispatch(B), combine(F)]",
             "[combine(F), combine(B), dispatch(F), dispatch(B)]");
  cannot_run("attn(B), attn(W)", "attn(W), attn(B)");
}

TEST_CASE("a plan of decode is refused at its own line") {
  const std::string decode = plan("decode-two-batch");
  const auto refused = [&](const std::string& changed, int line, const std::string& says) {
    check_named_refused(kDecode, "overlap", changed, line, says);
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

TEST_CASE("unequal micro-batches and another cut of attention are refused where there are none") {
  check_changes_of_named(kDecode, "overlap", "split: 0.6\nattention_cut: behind_core\n" + plan("decode-two-batch"),
                         {
                             {"0.6", "1", 1, "split must be from 0.01 to 0.99, not 1"},
                             {"0.6", "half", 1, "split must be a number"},
                             {"split", "splits", 1, "unknown key 'splits'; did you mean 'split'?"},
                             {"behind_core", "behind_cores", 2, "did you mean 'behind_core'?"},
                         });
  check_named_refused(kPrefill, "overlap", "attention_cut: behind_core\n" + plan("prefill-two-batch"), 1,
                      "attention_cut is for decode, which has attn-0 and attn-1");
  check_named_refused(kScenario, "overlap", "split: 0.6\n" + plan("dualpipe-chunk"), 1,
                      "split is for two micro-batches");
}

TEST_CASE("pieces are refused where nothing is cut, or not so") {
  const std::string single = replaced(kDecode, "decode-two-batch", "per-expert");
  const std::string expert = plan("per-expert");
  check_changes_of_named(
      single, "overlap", expert,
      {
          {"pieces: 2", "pieces: 0", 1, "pieces must be from 1 to 64, not 0"},
          {"pieces: 2", "pieces: 65", 1, "pieces must be from 1 to 64, not 65"},
          {"pieces: 2\n", "", 1, "pieces_by needs the key 'pieces'"},
          {"pieces_by: expert", "pieces_by: experts", 2, "has an unknown value 'experts'; did you mean 'expert'?"},
          {"pieces_by", "piece_by", 2, "unknown key 'piece_by'; did you mean 'pieces_by'?"},
          {"- shared\n  - [", "- [shared, ", 3,
           "compute has 'shared' in brackets, which are for what has pieces: dispatch, mlp, combine"},
          {"[receive dispatch, mlp, issue combine]", "[receive dispatch, [mlp, issue combine]]", 3,
           "compute must list plain words, and lists of them"},
          {"[receive dispatch, mlp, issue combine]", "[mlp, issue combine]", 3, "lack phase 'receive dispatch'"},
          {"[receive dispatch, mlp, issue combine]", "[mlp, receive dispatch, issue combine]", 0,
           "this order cannot run: "},
          {"pieces: 2", "pieces: 64", 0, "pieces: 64 are more than the 2 experts of a rank"},
      });
  check_named_refused(kPrefill, "overlap", plan("prefill-two-batch") + "pieces: 2\npieces_by: expert\n", 4,
                      "pieces_by expert, is for the low-latency all-to-all");
  check_named_refused(kScenario, "overlap", plan("dualpipe-chunk") + "pieces: 2\npieces_by: expert\n", 5,
                      "pieces_by expert, is for the low-latency all-to-all");
}

TEST_CASE("SMs of phases are refused where there are none, or too few") {
  check_changes_of_named(
      kScenario, "overlap", "sms: {dispatch(F): 12, mlp(F): 120}\n" + kPlan,
      {
          {"dispatch(F)", "dispatch", 1, "unknown key 'sms.dispatch'; there is: attn(F), dispatch(F)"},
          {"12,", "0,", 1, "dispatch(F) must be from 1 to 4096, not 0"},
          {"12,", "many,", 1, "dispatch(F) must be a whole number"},
          {"{dispatch(F): 12, mlp(F): 120}", "12", 1, "sms must be a mapping"},
          {"12,", "132,", 0, "sms: 132 of dispatch(F) are more than the 131 there are"},
          {"120", "133", 0, "sms: 133 of mlp(F) are more than the 132 there are"},
      });
  check_named_refused(kDecode, "overlap", "sms: {mlp: 100}\n" + plan("decode-two-batch"), 1,
                      "sms are of the normal all-to-all: the low-latency one is issued by all");
}

TEST_CASE("SMs for a combine are those of a plan that may release it") {
  const std::string single = replaced(kDecode, "decode-two-batch", "single-batch");
  const auto simulated = [&](const std::string& scenario, const std::string& sms) {
    return simulate_text(scenario, {"--set", "comm.num_sms=" + sms});
  };
  for (const char* sms : {"0", "3", "131"}) CHECK(simulated(single, sms).exit_code == 0);
  for (const char* sms : {"-1", "132"}) CHECK(simulated(single, sms).exit_code == 3);
  CHECK(simulated(replaced(kDecode, "decode-two-batch", "sequential"), "3").exit_code == 3);
}

TEST_CASE("a plan of prefill or training is refused at its own line") {
  const std::string prefill = plan("prefill-two-batch");
  check_changes_of_named(
      kPrefill, "overlap", prefill,
      {
          {", shared 1", "", 1, "compute and communication lack phase 'shared 1'"},
          {"dispatch 1", "issue dispatch 1", 2, "communication names an unknown phase 'issue dispatch 1'"},
          {"dispatch 1", "dispatch 0", 2, "communication repeats phase 'dispatch 0'"},
          {"dispatch 1", "attn 0", 2, "communication repeats phase 'attn 0', which stands in compute"},
          {"[attn 1", "[next attn 1", 0, "this order cannot run: tasks wait for each other in a circle"},
      });
  const std::string chunk = plan("dualpipe-chunk");
  check_named_refused(kScenario, "overlap", replaced(chunk, "attn(F)", "next attn(F)"), 1,
                      "compute has 'attn(F)' of another layer: that is for two micro-batches");
  check_named_refused(kScenario, "overlap", replaced(chunk, "attn(F)", "attn(F) 1"), 1, "did you mean 'attn(F)'?");
}

TEST_CASE("phases that a model does not have are still checked where a plan names them") {
  const std::string scenario = replaced(kDecode, "deepseek-v3", "qwen3-235b-a22b");
  const std::string decode = plan("decode-two-batch");
  check_named_refused(scenario, "overlap", replaced(decode, "shared 0", "shared 7"), 1, "did you mean 'shared 0'?");
  check_named_refused(scenario, "overlap", replaced(decode, "shared 0", "shared 1"), 1, "repeats phase 'shared 1'");
  CHECK(simulate_text(scenario).exit_code == 0);
}

TEST_CASE("an overlap plan that is not there, or does not apply, is refused at overlap") {
  check_changes_of(kDecode, {{"overlap: default", "overlap: plan.yaml", 12, "overlap 'plan.yaml': no such file"},
                             {"overlap: default", "overlap: [mlp]", 12, "overlap must be a single value, not a list"}});
  check_scenario_refused(
      replaced(replaced(kDecode, "decode-two-batch", "sequential"), "overlap: default", "overlap: plan.yaml"), 12,
      "overlap does not apply to the schedule sequential");
}

TEST_CASE("a refused plan leaves no output behind") {
  const TemporaryFolder target;
  const std::string bad = target.write("plan.yaml", "compute: [mlp 0]\n");
  const std::string scenario = target.write("scenario.yaml", kDecode);
  check_refused({"simulate", scenario, "--set", "overlap=" + bad, "-o", target / "run", "--trace", target / "t.json"},
                bad + ":1: ", "lack phase");
  CHECK(std::distance(std::filesystem::directory_iterator(target.path()), {}) == 2);
}

}  // TEST_SUITE("cli/bad_overlap_plan")
