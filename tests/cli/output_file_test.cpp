// No command writes over what it reads or over what others wrote, and a name that is empty is none.
#include <sys/stat.h>

#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/sweep.hpp"
#include "tests/support/trace_text.hpp"

TEST_SUITE("cli/output_file") {

namespace fs = std::filesystem;
using namespace moeline::testing;

namespace {

const std::string kMine = "# my notes\n";
const std::string kTable = source("calib/data/low_latency_hold.csv").string();

struct Traces {
  TemporaryFolder folder;
  std::string text = trace_of(gpu_range("attn", "0", "50") + "," + kernel("0", "10"));
  std::string a = folder.write("a.json", text);
  std::string b = folder.write("b.json", text);
};

}  // namespace

TEST_CASE("an output that is an input is refused before anything is written, by whatever name") {
  const Traces traces;
  const std::string map = traces.folder.write("map.yaml", "schema: 1\nphases: {mlp: gemm}\n");
  const std::string link = traces.folder / "link.json";
  fs::create_symlink(traces.a, link);
  const std::string detour = traces.folder / "../" + traces.folder.path().filename().string() + "/a.json";
  for (const std::string& same : {traces.a, link, detour}) {
    check_wrong_usage({"replay", traces.a, "--graph", same}, "would overwrite an input");
    check_wrong_usage({"compare", traces.a, traces.b, "--trace", same}, "would overwrite an input");
  }
  check_wrong_usage({"compare", traces.a, traces.b, "--trace", traces.b}, "would overwrite an input, " + traces.b);
  check_wrong_usage({"replay", traces.a, "--map", map, "--graph", map}, "would overwrite an input");
  CHECK(content_of(traces.a) == traces.text);
  CHECK(content_of(traces.b) == traces.text);
  CHECK(content_of(map).starts_with("schema"));
  const ValidScenario valid;
  check_wrong_usage(valid.with({"--trace", valid.file}), "would overwrite an input");
  CHECK(content_of(valid.file) == kScenario);
  check_wrong_usage({"calibrate", traces.a, "-o", traces.a}, "would overwrite an input");
}

TEST_CASE("a file that moeline did not write is refused before any work, and written over by --force") {
  const Traces traces;
  const ValidScenario valid;
  const TemporaryFolder folder;
  const std::string mine = folder.write("README.md", kMine);
  const std::string study = folder.write("study.yaml", kStudy);
  const Arguments calls[] = {
      {"simulate", valid.file, "--trace", mine},
      {"compare", traces.a, traces.b, "--trace", mine},
      {"replay", traces.a, "--graph", mine},
      {"calibrate", kTable, "-o", mine},
      {"sweep", study, "-o", folder / "table.sqlite", "--html", mine},
      {"plan", source("tests/clients/plan.yaml").string(), "--html", mine},
  };
  for (const Arguments& call : calls) {
    check_wrong_usage(call, mine + ": is there already, and is not a ");
    check_wrong_usage(call, "that moeline wrote; --force writes over it");
    CHECK(content_of(mine) == kMine);
  }
  CHECK_FALSE(fs::exists(folder / "table.sqlite"));
  CHECK(run_moeline({"replay", traces.a, "--graph", mine, "--force"}).exit_code == 0);
  CHECK(content_of(mine) != kMine);
  check_wrong_usage({"replay", traces.a, "--graph", traces.a, "--force"}, "would overwrite an input");
}

TEST_CASE("what moeline wrote it writes over, each kind by its own kind") {
  const Traces traces;
  const ValidScenario valid;
  const TemporaryFolder folder;
  struct Writing {
    Arguments call;
    std::string file;
  };
  const std::vector<Writing> writings = {
      {{"simulate", valid.file, "--trace"}, folder / "trace.json"},
      {{"simulate", valid.file, "--trace"}, folder / "trace.json.gz"},
      {{"compare", traces.a, traces.b, "--trace"}, folder / "both.json"},
      {{"replay", traces.a, "--graph"}, folder / "graph.json"},
      {{"replay", traces.a, "--graph"}, folder / "graph.dot"},
      {{"calibrate", kTable, "-o"}, folder / "profile.yaml"},
  };
  const auto write = [](Arguments call, const std::string& file) {
    call.push_back(file);
    return run_moeline(call);
  };
  for (const auto& [call, file] : writings) {
    const std::string what = joined(call) + file;
    CAPTURE(what);
    REQUIRE(write(call, file).exit_code == 0);
    const std::string first = content_of(file);
    const Outcome again = write(call, file);
    CAPTURE(again.err);
    CHECK(again.exit_code == 0);
    CHECK(content_of(file) == first);
  }
  CHECK(write(writings[0].call, folder / "both.json").exit_code == 0);  // a trace is a trace, of whatever command
  for (const std::size_t other : {3U, 4U, 5U}) {
    Arguments call = writings[other].call;
    call.push_back(folder / "trace.json");
    check_wrong_usage(call, "trace.json: is there already, and is not ");
  }
}

TEST_CASE("traces and profiles of others are nobody's to write over, however alike") {
  const Traces traces;
  const TemporaryFolder folder;
  const std::string kineto = folder.write(
      "kineto.json", "{\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0},\n\"traceEvents\": []\n}\n");
  const std::string damaged = folder.write("damaged.json.gz", std::string("\x1f\x8b\x08\x00\x00", 5));
  for (const std::string& file : {kineto, damaged}) {
    check_wrong_usage({"compare", traces.a, traces.b, "--trace", file}, "is not a trace that moeline wrote");
  }
  const std::string facts = folder.write("facts.yaml", content_of(source("hwprofiles/h20.yaml")));
  check_wrong_usage({"calibrate", kTable, "-o", facts}, "is not a profile that moeline wrote");
  const std::string quoting =
      folder.write("quoting.md", "# Notes\n\n# Written by `moeline calibrate`; and <meta name=\"generator\">\n");
  check_wrong_usage({"calibrate", kTable, "-o", quoting}, "is not a profile that moeline wrote");
  const std::string installed = folder.write("h100.yaml", content_of(source("hwprofiles/h100.yaml")));
  CHECK(run_moeline({"calibrate", kTable, "-o", installed}).exit_code == 0);  // calibrate wrote it
}

TEST_CASE("an empty file is nobody's, and a pipe or device is not read to find out whose it is") {
  const Traces traces;
  const TemporaryFolder folder;
  CHECK(run_moeline({"replay", traces.a, "--graph", folder.write("empty.json", "")}).exit_code == 0);
  const bool link = fs::is_symlink("/dev/stdout");
  const Outcome both = run_moeline({"replay", traces.a, "--graph", "/dev/stdout"});  // a file, here
  CHECK(both.out.starts_with("{\n\"program\": \"moeline\""));
  CHECK(both.out.ends_with(run_moeline({"replay", traces.a}).out));
  CHECK(fs::is_symlink("/dev/stdout") == link);
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  CHECK(run_moeline({"replay", traces.a, "--graph", pipe}).exit_code == 0);
  ::close(reader);
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("an empty argument of an option is wrong usage") {
  const Traces traces;
  const ValidScenario valid;
  check_wrong_usage({"replay", traces.a, "--graph", ""}, "--graph: must not be empty");
  check_wrong_usage({"compare", traces.a, traces.b, "--trace", ""}, "--trace: must not be empty");
  check_wrong_usage({"compare", traces.a, traces.b, "--fail-above", ""}, "--fail-above: must not be empty");
  check_wrong_usage(valid.with({"--trace", ""}), "--trace: must not be empty");
}

TEST_CASE("overrides of a scenario without a scenario are wrong usage") {
  const Traces traces;
  check_wrong_usage({"analyze", traces.a, "--set", "layers=2"}, "--set: overrides the scenario, and there is none");
  check_wrong_usage({"compare", traces.a, traces.b, "--set", "layers=2"}, "--set: applies to scenarios");
}

TEST_CASE("wrong usage is said on one line") {
  check_wrong_usage({"compare", "a", "b", "--format", "xml"}, "--format: unknown value 'xml'; there is: table, json");
  check_wrong_usage({"compare", "a"}, "b is required");
  check_wrong_usage({"replay", "a", "b\nc"}, "b?c");
}

}  // TEST_SUITE("cli/output_file")
