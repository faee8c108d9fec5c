// The folder of a run: what is somebody's stays, and traces/ holds the traces of one run alone.
#include <set>

#include "tests/support/cli.hpp"

TEST_SUITE("cli/run_folder") {

namespace fs = std::filesystem;
using namespace moeline::testing;

namespace {

struct Run {
  ValidScenario valid;
  TemporaryFolder folder;
  std::string out = folder / "out";

  [[nodiscard]] Arguments call(const Arguments& more = {}) const {
    Arguments arguments = valid.with({"--set", "layers=2", "-o", out});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  void write(const std::string& name, const std::string& content) const {
    fs::create_directories(fs::path(out) / "traces");
    std::ofstream(fs::path(out) / name) << content;
  }
  [[nodiscard]] std::set<std::string> traces() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(fs::path(out) / "traces")) names.insert(entry.path().filename());
    return names;
  }
};

}  // namespace

TEST_CASE("a run folder that holds somebody's file is refused before any work, and nothing in it is touched") {
  for (const std::string name : {"manifest.json", "metrics.json", "traces/rank_0.json", "traces/notes.txt"}) {
    const Run run;
    run.write(name, "{\"mine\": 1}\n");
    check_wrong_usage(run.call(), "-o " + run.out + "/" + name + ": is there already, and is not ");
    CHECK(content_of(run.out + "/" + name) == "{\"mine\": 1}\n");
    CHECK(run.traces().size() <= 1);
    const Outcome forced = run_moeline(run.call({"--force"}));
    CHECK(forced.exit_code == 0);
    CHECK((content_of(run.out + "/" + name) == "{\"mine\": 1}\n") == (name == "traces/notes.txt"));  // not in its way
  }
}

TEST_CASE("files beside those of a run are no hindrance, and stay") {
  const Run run;
  run.write("notes.md", "mine\n");
  CHECK(run_moeline(run.call()).exit_code == 0);
  CHECK(content_of(run.out + "/notes.md") == "mine\n");
}

TEST_CASE("a run takes the place of the run before it: no trace of that is left for clients to load") {
  const Run run;
  REQUIRE(run_moeline(run.call({"--set", "ranks=all", "--trace-ranks", "0,7"})).exit_code == 0);
  CHECK(run.traces() == std::set<std::string>{"rank_0.json", "rank_7.json"});
  const Outcome again = run_moeline(run.call({"--gzip"}));
  CHECK(again.exit_code == 0);
  CHECK(again.err.find("traces of an earlier run removed: 2\n") != std::string::npos);
  CHECK(run.traces() == std::set<std::string>{"rank_0.json.gz"});
  CHECK(run_moeline(run.call({"--gzip"})).err.find("removed") == std::string::npos);
}

}  // TEST_SUITE("cli/run_folder")
