// Sweeps: the table is the same however it came about, and nothing that was finished is lost.
#include <csignal>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/support/dice.hpp"
#include "tests/support/json.hpp"
#include "tests/support/sweep.hpp"

TEST_SUITE("sweep/sweep") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Starts the program and kills it after so long.
void kill_after(const Arguments& arguments, std::chrono::microseconds time) {
  std::vector<std::string> words = {MOELINE_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, MOELINE_BINARY, &quiet, nullptr, pointers.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&quiet);
  std::this_thread::sleep_for(time);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace

TEST_CASE("the table is the same whatever the number of workers, and failed points are rows with their reason") {
  const SweptStudy c;
  const Outcome one = c.sweep("one.sqlite", {"--workers", "1"});
  CAPTURE(one.err);
  CHECK(one.exit_code == 0);
  CHECK(one.err.find("24 of 24 points, 8 failed") != std::string::npos);
  CHECK(std::count(one.out.begin(), one.out.end(), '\n') == 25);
  CHECK(one.out.find("parallelism.ep must divide the 256 routed experts: 24 does not") != std::string::npos);
  CHECK(c.sweep("three.sqlite", {"--workers", "3"}).out == one.out);
}

TEST_CASE("a table that is there is not overwritten, one of another study is not continued") {
  const SweptStudy c;
  REQUIRE(c.sweep("table.sqlite").exit_code == 0);
  CHECK(c.sweep("table.sqlite").exit_code == 3);
  CHECK(c.sweep("table.sqlite", {"--resume"}).exit_code == 0);
  (void)c.folder.write("study.yaml", kStudy + "# changed\n");
  const Outcome other = c.sweep("table.sqlite", {"--resume"});
  CHECK(other.exit_code == 3);
  CHECK(other.err.find("holds another study") != std::string::npos);
}

TEST_CASE("killed at 50 random instants and resumed, a sweep ends with the table of an undisturbed one") {
  const SweptStudy c;
  const Outcome undisturbed = c.sweep("undisturbed.sqlite");
  Dice dice(1);
  kill_after({"sweep", c.study, "-o", c.path("killed.sqlite")}, std::chrono::milliseconds(30));
  for (int i = 0; i < 50; ++i) {
    kill_after({"sweep", c.study, "-o", c.path("killed.sqlite"), "--resume"},
               std::chrono::microseconds(dice.below(40'000)));
  }
  const Outcome resumed = c.sweep("killed.sqlite", {"--resume"});
  CAPTURE(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.out == undisturbed.out);
}

TEST_CASE("a table is called as what it is, an SQLite file, or refused before any work") {
  const SweptStudy c;
  for (const char* name : {"table.csv", "table.json", "table", "table.sqlite.bak"}) {
    check_wrong_usage(c.arguments(name), c.path(name) + ": the table is an SQLite file, whose name ends in .sqlite");
    CHECK_FALSE(std::filesystem::exists(c.path(name)));
  }
  check_wrong_usage(c.arguments("table.csv"), "--format csv > FILE");
  for (const char* name : {"table.db", "table.sqlite3", "table.SQLITE"}) {
    CHECK(c.sweep(name).exit_code == 0);
    CHECK(content_of(c.path(name)).starts_with("SQLite format 3"));
  }
}

TEST_CASE("a condition on a metric is a limit: who breaks it stays in the table and is never the best") {
  const TemporaryFolder folder;
  const auto swept = [&](const std::string& where) {
    const std::string study =
        folder.write("s.yaml", "schema: 1\nscenario: " + std::string(MOELINE_SOURCE_DIR) +
                                   "/experiments/studies/tp_or_ep_by_concurrency/tp8.yaml\naxes:\n"
                                   "  workload.concurrency: [8, 16, 32]\nwhere: [\"workload.concurrency > 8\"" +
                                   where + "]\nmetrics: [tpot_ms, tokens_per_s_per_gpu]\n");
    auto document = in_json({"sweep", study, "-o", (folder.path() / "t.sqlite").string(), "-q"});
    std::filesystem::remove(folder.path() / "t.sqlite");
    return document;
  };
  const auto free = swept("");
  REQUIRE(free["points"].Size() == 2);
  CHECK(free["best"]["id"].GetInt() == 1);
  const double slower = free["points"][1]["metrics"]["tpot_ms"].GetDouble() - 0.001;  // as it is rounded
  const auto limited = swept(", \"tpot_ms < " + std::to_string(slower) + "\"");
  CHECK(limited["points"].Size() == 2);
  CHECK(limited["best"]["id"].GetInt() == 0);
  CHECK_FALSE(swept(", \"tpot_ms <= 0.001\"").HasMember("best"));
}

TEST_CASE("a study of alternatives along numbers says which is best where; one of models or workloads does not") {
  const TemporaryFolder folder;
  const auto turns = [&](const std::string& axes) {
    const std::string study =
        folder.write("s.yaml", "schema: 1\nscenario: " + std::string(MOELINE_SOURCE_DIR) +
                                   "/experiments/studies/tp_or_ep_by_concurrency/tp8.yaml\nset: [layers=4]\naxes:\n" +
                                   axes + "metrics: [step_ms, fits_memory]\n");
    auto document = in_json({"sweep", study, "-o", (folder.path() / "t.sqlite").string(), "-q"});
    std::filesystem::remove(folder.path() / "t.sqlite");
    return document;
  };
  const std::string numbers = "  workload.kv_len: [1024, 4096]\n";
  const auto found = turns("  parallelism: [\"{tp: 8}\", \"{tp: 8, ep: 8}\"]\n" + numbers);
  REQUIRE(found.HasMember("turns"));
  CHECK(std::string(found["turns"]["along"].GetString()) == "workload.kv_len");
  CHECK(std::string(found["turns"]["stretches"][0]["winner"].GetString()) == "parallelism={tp: 8, ep: 8}");
  CHECK_FALSE(turns("  hardware: [h200, b200]\n" + numbers).HasMember("turns"));
}

}  // TEST_SUITE("sweep/sweep")
