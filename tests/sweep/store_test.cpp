// Tables in files: what is stored survives whatever happens to the process or to the file beside it, and nothing of
// another's is touched.
#include "experiments/sweep/store.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <future>

#include "base/error.hpp"
#include "tests/support/sweep.hpp"

TEST_SUITE("sweep/store") {

using namespace moeline;
using namespace moeline::testing;

namespace {

namespace fs = std::filesystem;

PointResult row(std::size_t id) { return {.id = id, .metrics = {static_cast<double>(id), NAN}}; }

std::vector<std::size_t> ids_of(const std::vector<PointResult>& results) {
  std::vector<std::size_t> ids;
  for (const PointResult& result : results) ids.push_back(result.id);
  return ids;
}

using Ids = std::vector<std::size_t>;

// Runs `body` in another process, which is killed before any object of it ends.
template <class Body>
void run_and_kill(const Body& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) body([] { (void)kill(getpid(), SIGKILL); });
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
}

void overwrite(const std::string& file, std::size_t from, std::size_t bytes) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(static_cast<std::streamoff>(from));
  stream << std::string(bytes, '\xee');
}

}  // namespace

TEST_CASE("rows come back as they were stored: numbers exactly, absent ones as absent, reasons in full") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  Store store(c.path("table.sqlite"), study, Store::Mode::create);
  store.add({.id = 3, .metrics = {0.1 + 0.2, NAN}});
  store.add({.id = 1, .failure = "\"why\"\nnot, 'so'"});
  const std::vector<PointResult> results = store.results();
  REQUIRE(ids_of(results) == Ids{1, 3});
  CHECK(results[0].failure == "\"why\"\nnot, 'so'");
  CHECK(std::isnan(results[0].metrics[0]));
  CHECK(results[1].metrics[0] == 0.1 + 0.2);
  CHECK(std::isnan(results[1].metrics[1]));
  CHECK(results[1].failure.empty());
  const std::vector<bool> stored = store.stored();
  CHECK(std::count(stored.begin(), stored.end(), true) == 2);
  CHECK((stored[1] && stored[3]));
}

TEST_CASE("of a process killed right behind a row the row is there, in the log that it left") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  run_and_kill([&](auto die) {
    Store store(c.path("table.sqlite"), study, Store::Mode::create);
    for (const std::size_t id : Ids{0, 1, 2}) store.add(row(id));
    die();
  });
  REQUIRE(fs::file_size(c.path("table.sqlite-wal")) > 0);
  CHECK(ids_of(read_tables({c.path("table.sqlite")}, study)) == Ids{0, 1, 2});
  CHECK_FALSE(fs::exists(c.path("table.sqlite-wal")));
}

TEST_CASE("a file whose process was killed before it had tables is as good as none") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  run_and_kill([&](auto die) {
    Database database(c.path("table.sqlite"), Database::Open::or_create);
    const Transaction transaction(database);
    database.run("CREATE TABLE study (key TEXT)");
    die();
  });
  Store store(c.path("table.sqlite"), study, Store::Mode::create);
  CHECK(store.results().empty());
}

TEST_CASE("of many rows that are stored at once all are there, or none") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  Store store(c.path("table.sqlite"), study, Store::Mode::create);
  Database(c.path("table.sqlite"), Database::Open::existing)
      .run("CREATE TRIGGER full BEFORE INSERT ON points WHEN NEW.id = 2 BEGIN SELECT RAISE(ABORT, 'no more'); END");
  CHECK_THROWS_WITH_AS(store.add(std::vector{row(1), row(2)}),
                       (c.path("table.sqlite") + ": cannot be written: no more").c_str(), SpecError);
  CHECK(store.results().empty());
  store.add(std::vector{row(1), row(3)});
  CHECK(ids_of(store.results()) == Ids{1, 3});
}

TEST_CASE("a row that two processes simulated is one row") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  Store one(c.path("table.sqlite"), study, Store::Mode::create);
  Store other(c.path("table.sqlite"), study, Store::Mode::resume);
  one.add(row(4));
  other.add(row(4));
  other.add(row(5));
  CHECK(ids_of(one.results()) == Ids{4, 5});
}

TEST_CASE("of four sweeps that create one file at once one does, and the others leave it alone") {
  const SweptStudy c;
  std::vector<std::future<Outcome>> sweeps;
  for (int i = 0; i < 4; ++i) sweeps.push_back(std::async(std::launch::async, [&] { return c.sweep("table.sqlite"); }));
  int done = 0;
  for (auto& sweep : sweeps) {
    const Outcome outcome = sweep.get();
    CAPTURE(outcome.err);
    if (outcome.exit_code == 0) ++done;
    if (outcome.exit_code != 0) CHECK(outcome.err.find("is there already: --resume continues it") != std::string::npos);
  }
  CHECK(done == 1);
  CHECK(c.sweep("table.sqlite", {"--resume"}).out == c.sweep("undisturbed.sqlite").out);
}

TEST_CASE("four sweeps that continue one file at once share it, and each ends with the whole table") {
  const SweptStudy c;
  const Outcome undisturbed = c.sweep("undisturbed.sqlite");
  std::vector<std::future<Outcome>> sweeps;
  for (int i = 0; i < 4; ++i) {
    sweeps.push_back(std::async(std::launch::async, [&] { return c.sweep("table.sqlite", {"--resume"}); }));
  }
  for (auto& sweep : sweeps) {
    const Outcome outcome = sweep.get();
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out == undisturbed.out);
  }
}

TEST_CASE("a sweep waits for a process that holds the file") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  { const Store created(c.path("table.sqlite"), study, Store::Mode::create); }
  std::future<Outcome> sweep;
  {
    Database other(c.path("table.sqlite"), Database::Open::existing);
    const Transaction transaction(other);
    sweep = std::async(std::launch::async, [&] { return c.sweep("table.sqlite", {"--resume"}); });
    CHECK(sweep.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout);
  }
  CHECK(sweep.get().exit_code == 0);
}

TEST_CASE("what is no table is refused, and stays as it was") {
  const SweptStudy c;
  const std::string text = c.folder.write("text.sqlite", "these are my notes, and no database at all");
  check_refused(c.arguments("text.sqlite"), text, "file is not a database");
  check_refused(c.arguments("text.sqlite", {"--resume"}), text, "file is not a database");
  CHECK(content_of(text) == "these are my notes, and no database at all");

  const std::string foreign = c.path("foreign.sqlite");
  Database(foreign, Database::Open::or_create).run("CREATE TABLE mine (a INTEGER)");
  const std::string before = content_of(foreign);
  check_refused(c.arguments("foreign.sqlite"), foreign, "is there already");
  check_refused(c.arguments("foreign.sqlite", {"--resume"}), foreign,
                "is an SQLite file, and holds no table of a sweep");
  CHECK(content_of(foreign) == before);

  fs::create_directory(c.path("folder.sqlite"));
  check_refused(c.arguments("folder.sqlite"), c.path("folder.sqlite"), "cannot be opened for writing: Is a directory");
}

TEST_CASE("a table that another version of moeline laid out is refused, and stays as it was") {
  const SweptStudy c;
  REQUIRE(c.sweep("table.sqlite").exit_code == 0);
  const std::string file = c.path("table.sqlite");
  Database(file, Database::Open::existing).run("PRAGMA user_version = 2");
  const std::string before = content_of(file);
  const std::string says = "was written by another version of moeline: its tables have layout 2, not 1";
  check_refused(c.arguments("table.sqlite", {"--resume"}), file, says);
  check_refused(c.arguments("merged.sqlite", {"--merge", file}), file, says);
  CHECK(content_of(file) == before);
}

TEST_CASE("a table with a broken page is refused instead of being read halfway") {
  const SweptStudy c;
  REQUIRE(c.sweep("table.sqlite").exit_code == 0);
  constexpr std::size_t kPage = 4096;
  const std::string file = c.path("table.sqlite");
  REQUIRE(fs::file_size(file) > 3 * kPage);
  overwrite(file, 3 * kPage, fs::file_size(file) - 3 * kPage);
  check_refused(c.arguments("table.sqlite", {"--resume"}), file, "cannot be read: database disk image is malformed");
}

TEST_CASE("a row of a point that the study has not is refused") {
  const SweptStudy c;
  REQUIRE(c.sweep("table.sqlite").exit_code == 0);
  Database(c.path("table.sqlite"), Database::Open::existing).run("INSERT INTO points (id) VALUES (24)");
  check_refused(c.arguments("table.sqlite", {"--resume"}), c.path("table.sqlite"), "has a point 24");
}

TEST_CASE("a bad file among those to merge is named, and nothing is merged") {
  const SweptStudy c;
  REQUIRE(c.sweep("good.sqlite").exit_code == 0);
  const std::string text = c.folder.write("text.sqlite", "no database");
  const std::string other = (fs::path(c.path("other")) / "study.yaml").string();
  fs::create_directory(c.path("other"));
  (void)c.folder.write("other/study.yaml", kStudy + "# changed\n");
  REQUIRE(run_moeline({"sweep", other, "-o", c.path("other.sqlite")}).exit_code == 0);
  const auto refused = [&](const std::string& bad, const std::string& says) {
    check_refused(c.arguments("merged.sqlite", {"--merge", c.path("good.sqlite"), bad}), bad, says);
    CHECK_FALSE(fs::exists(c.path("merged.sqlite")));
  };
  refused(text, "file is not a database");
  refused(c.path("nowhere.sqlite"), "cannot be opened: No such file or directory");
  refused(c.path("other.sqlite"), "holds another study");
  CHECK_FALSE(fs::exists(c.path("nowhere.sqlite")));
}

TEST_CASE("merging into a table that is there needs --resume, and keeps what it has") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  Store(c.path("one.sqlite"), study, Store::Mode::create).add(row(1));
  Store(c.path("two.sqlite"), study, Store::Mode::create).add(row(2));
  const std::string before = content_of(c.path("one.sqlite"));
  check_refused(c.arguments("one.sqlite", {"--merge", c.path("two.sqlite")}), c.path("one.sqlite"), "is there already");
  CHECK(content_of(c.path("one.sqlite")) == before);
  const Outcome merged = c.sweep("one.sqlite", {"--resume", "--merge", c.path("one.sqlite"), c.path("two.sqlite")});
  CAPTURE(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(ids_of(read_tables({c.path("one.sqlite")}, study)) == Ids{1, 2});
}

}  // TEST_SUITE("sweep/store")
