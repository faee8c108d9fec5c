// A file that is called - is stdin, in every command that reads one.
#include "tests/support/cli.hpp"

TEST_SUITE("cli/stdin") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kDecode = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();

// What comes through stdin gives what the file gives, but for its name.
void check_same(Arguments call, const std::string& file) {
  call.push_back(file);
  const Outcome of_file = run_moeline(call);
  call.back() = "-";
  const Outcome of_stdin = run_moeline(call, file);
  CAPTURE(joined(call));
  CAPTURE(of_stdin.err);
  CHECK(of_stdin.exit_code == of_file.exit_code);
  REQUIRE(!of_file.out.empty());
  const std::size_t at = of_file.out.find(file);
  CHECK(of_stdin.out == (at == std::string::npos ? of_file.out : replaced(of_file.out, file, "-")));
}

}  // namespace

TEST_CASE("scenarios, loads, models, plans and tables come through stdin as from a file") {
  check_same({"simulate", "--format", "csv"}, kDecode);
  check_same({"explain"}, source("experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml").string());
  check_same({"search", "--most", "2", "--workers", "1"}, kDecode);
  check_same({"plan", "--no-sensitivity", "--format", "csv"},
             source("experiments/studies/serve_deepseek_v3_h800/plan.yaml").string());
  const TemporaryFolder folder;
  check_same({"balance", "--gpus", "2"}, folder.write("loads.csv", "5,6,7,8\n1,2,3,4\n"));
}

TEST_CASE("a trace comes through stdin, packed or not") {
  const TemporaryFolder folder;
  for (const char* name : {"trace.json", "trace.json.gz"}) {
    const std::string trace = folder / name;
    REQUIRE(run_moeline({"simulate", kDecode, "--trace", trace}).exit_code == 0);
    check_same({"analyze", "--format", "json"}, trace);
    check_same({"replay"}, trace);
  }
}

TEST_CASE("a study on stdin writes no file that nobody named") {
  const TemporaryFolder folder;
  const std::string study = folder.write("study.yaml", "schema: 1\nscenario: " + kDecode + "\naxes:\n  seed: [1, 2]\n");
  const Outcome of_file = run_moeline({"sweep", study, "-o", folder / "other.sqlite", "--format", "csv"});
  const Outcome in_memory = run_moeline({"sweep", "-", "--format", "csv"}, study);
  CHECK(in_memory.exit_code == 0);
  CHECK(in_memory.out == of_file.out);
  CHECK(!std::filesystem::exists(":memory:"));
  const Outcome named = run_moeline({"sweep", "-", "-o", folder / "table.sqlite", "--format", "csv"}, study);
  CHECK(named.out == of_file.out);
  CHECK(std::filesystem::exists(folder / "table.sqlite"));
}

TEST_CASE("bad input on stdin is refused as -, with its line") {
  const TemporaryFolder folder;
  const std::string file = folder.write("bad.yaml", replaced(kScenario, "schedule: dualpipe-chunk", "schedul: x"));
  const Outcome outcome = run_moeline({"simulate", "-"}, file);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.err.starts_with("moeline: -:5: unknown key 'schedul'; did you mean 'schedule'?"));
  CHECK(run_moeline({"simulate", "-"}).err.find("-: is empty") != std::string::npos);
}

}  // TEST_SUITE("cli/stdin")
