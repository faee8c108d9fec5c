// --quiet, of every command: results and errors alone.
#include "tests/support/cli.hpp"

TEST_SUITE("cli/quiet") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("notes and warnings go with --quiet, results and reasons of the exit code stay") {
  const std::string pipeline = source("experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml").string();
  const TemporaryFolder folder;
  const Arguments call = {"simulate", pipeline, "--set", "level=phase", "--trace", folder / "trace.json",
                          "--format", "csv"};
  Arguments quiet = call;
  quiet.push_back("--quiet");
  const Outcome loud = run_moeline(call);
  CHECK(loud.err.find("MB of JSON") != std::string::npos);
  const Outcome silent = run_moeline(quiet);
  CHECK(silent.err.empty());
  CHECK(silent.out == loud.out);
  const Outcome strict = run_moeline({"price", "h20", "gemm:m=128,n=7168,k=2048", "--strict", "-q"});
  CHECK(strict.exit_code == 1);
  CHECK(strict.err.find("--strict") != std::string::npos);
  CHECK(run_moeline({"simulate", "-q", "nowhere.yaml"}).err.find("no such file") != std::string::npos);
}

TEST_CASE("every command has --quiet") {
  for (const char* command : {"init", "simulate", "explain", "search", "compare", "calibrate", "list", "price", "model",
                              "analyze", "replay", "validate", "balance", "sweep", "plan"}) {
    CAPTURE(command);
    CHECK(run_moeline({command, "--help"}).out.find("--quiet") != std::string::npos);
  }
}

}  // TEST_SUITE("cli/quiet")
