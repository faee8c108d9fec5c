// Wrong usage is told in the words that were typed, on one line, with the nearest that there is.
#include "tests/support/cli.hpp"

TEST_SUITE("cli/usage") {

using namespace moeline::testing;

namespace {

const Arguments kFile = {"simulate", "x.yaml"};

Arguments simulate(const Arguments& more) {
  Arguments arguments = kFile;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("an unknown command is named, and the nearest one, whatever stands behind it") {
  const std::string says = "unknown command 'simulat'; did you mean 'simulate'?";
  check_wrong_usage({"simulat"}, says);
  check_wrong_usage({"simulat", "x.yaml", "--format", "json"}, says);
  check_wrong_usage({"simulat", "--help"}, says);
  check_wrong_usage({"--help", "simulat"}, says);
  check_wrong_usage({"--version", "simulat"}, says);
  check_wrong_usage({"nonsense", "--help"}, "unknown command 'nonsense'; there is: init, simulate, explain,");
  check_wrong_usage({"x.yaml", "simulate"}, "unknown command 'x.yaml'");
  check_wrong_usage({}, "a command is required, one of init, simulate, explain,");
}

TEST_CASE("help and version are no errors") {
  for (const Arguments& call : {Arguments{"--help"}, {"simulate", "--help"}, {"--help", "sweep"}, {"--version"}}) {
    const Outcome outcome = run_moeline(call);
    CAPTURE(joined(call));
    CHECK(outcome.exit_code == 0);
    CHECK(!outcome.out.empty());
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("an unknown option is named as it was typed, with the nearest of its command") {
  check_wrong_usage({"simulate", "--fromat", "json", "x.yaml"},
                    "moeline: unknown option of simulate '--fromat'; did you mean '--format'?");
  check_wrong_usage(simulate({"--sett", "a=b", "--formt", "csv"}), "'--sett'; did you mean '--set'?");
  check_wrong_usage(simulate({"--fromat=json"}), "'--fromat'; did you mean '--format'?");
  check_wrong_usage(simulate({"-format", "json"}), "'-format'; did you mean '--format'?");
  check_wrong_usage(simulate({"--FORMAT", "json"}), "'--FORMAT'; did you mean '--format'?");
  check_wrong_usage(simulate({"-x"}), "unknown option of simulate '-x'; there is: --help, --set,");
  check_wrong_usage({"simulate", "--fromat"}, "'--fromat'");  // that the scenario is missing comes second
  check_wrong_usage({"--versio"}, "unknown option of moeline '--versio'; did you mean '--version'?");
}

TEST_CASE("an option of another command is said to be one") {
  check_wrong_usage(simulate({"--fail-above", "5%"}),
                    "unknown option of simulate '--fail-above'; there is one of compare");
  check_wrong_usage({"plan", "x.yaml", "--resume"}, "unknown option of plan '--resume'; there is one of sweep");
}

TEST_CASE("an option before its command is told to go behind it") {
  check_wrong_usage({"--strict", "simulate", "x.yaml"}, "option '--strict' belongs behind its command, simulate");
  check_wrong_usage({"--fromat", "json", "simulate", "x.yaml"}, "'--fromat'; did you mean '--format'?");
}

TEST_CASE("a value that is missing is said to be missing, and no option is taken for it") {
  check_wrong_usage(simulate({"--trace"}), "--trace: a value is missing");
  check_wrong_usage(simulate({"--set"}), "--set: a value is missing");
  check_wrong_usage(simulate({"--trace", "--strict"}), "--trace: a value is missing before '--strict'");
  check_wrong_usage(simulate({"--output", "-h"}), "--output: a value is missing before '-h'");
  check_wrong_usage({"compare", "a", "b", "--layers", "--strict"}, "--layers: a value is missing before '--strict'");
  CHECK_FALSE(std::filesystem::exists("--strict"));
  check_refused({"compare", "a.yaml", "b.yaml", "--layers", "-1"}, "a.yaml", "no such file");  // a number is a value
}

TEST_CASE("a value that an option does not know is named, with the nearest") {
  check_wrong_usage(simulate({"--format", "jsn"}), "--format: unknown value 'jsn'; did you mean 'json'?");
  check_wrong_usage(simulate({"--format", "xml"}), "--format: unknown value 'xml'; there is: table, json, csv");
  check_wrong_usage({"list", "hardwares"}, "kind: unknown value 'hardwares'; did you mean 'hardware'?");
  check_wrong_usage({"calibrate", "a.csv", "-o", "p.yaml", "--given", "gem_fp8"}, "did you mean 'gemm_fp8'?");
  check_wrong_usage(simulate({"--format", "json", "--format", "csv"}), "--format: is given more than once");
}

TEST_CASE("an argument too many is named, and what the command takes") {
  check_wrong_usage(simulate({"y.yaml"}), "unexpected argument 'y.yaml': simulate takes nothing besides scenario");
  check_wrong_usage({"compare", "a", "b", "plan"}, "unexpected argument 'plan': compare takes nothing besides a and b");
  check_wrong_usage({"simulate", "--", "x.yaml", "y.yaml"}, "unexpected argument 'y.yaml'");
}

}  // TEST_SUITE("cli/usage")
