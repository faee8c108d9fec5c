// No command writes over what it reads, and a name that is empty is none.
#include "tests/support/cli.hpp"
#include "tests/support/trace_text.hpp"

namespace fs = std::filesystem;
using namespace moeline::testing;

namespace {

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

TEST_CASE("an output that is another file is written over") {
  const Traces traces;
  const std::string old = traces.folder.write("old.json", "old\n");
  CHECK(run_moeline({"replay", traces.a, "--graph", old}).exit_code == 0);
  CHECK(content_of(old) != "old\n");
  CHECK(run_moeline({"compare", traces.a, traces.b, "--trace", traces.folder / "new.json"}).exit_code == 0);
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
