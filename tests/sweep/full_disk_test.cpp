// Files that cannot grow or be written: one message that says so, and everything that was stored is there.
#include "experiments/sweep/store.hpp"
#include "tests/support/hindered.hpp"
#include "tests/support/sweep.hpp"

TEST_SUITE("sweep/full_disk") {

using namespace moeline;
using namespace moeline::testing;

namespace {

void check_not_permitted(const SweptStudy& c, const std::string& table, const std::string& says) {
  const Outcome outcome = run_with(kWithPermissions, c.arguments(table, {"--resume"}));
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.out.empty());
  CHECK(outcome.err == "moeline: " + c.path(table) + ": cannot be opened for writing: " + says + "\n");
}

}  // namespace

TEST_CASE("a table that can grow no further ends the sweep with one message, what is stored is there, and continued") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  const Outcome undisturbed = c.sweep("undisturbed.sqlite");
  for (const int kib : {1, 8, 40, 60, 80}) {  // no header, no tables, and some rows
    CAPTURE(kib);
    const std::string table = "table" + std::to_string(kib) + ".sqlite";
    const Outcome full = run_with_limit(kib, c.arguments(table));
    CAPTURE(full.err);
    CHECK(full.exit_code == 3);
    CHECK(full.out.empty());
    CHECK(full.err.starts_with("moeline: " + c.path(table) + ": cannot be written: "));
    CHECK(std::count(full.err.begin(), full.err.end(), '\n') == 1);
    if (kib >= 40) {
      const std::size_t stored = read_tables({c.path(table)}, study).size();
      CHECK((0 < stored && stored < study.points.size()));
      CHECK(full.err.ends_with("; " + std::to_string(stored) + " of 24 points are stored, and --resume continues\n"));
    }
    CHECK(c.sweep(table, {"--resume"}).out == undisturbed.out);
  }
}

TEST_CASE("a disk that is full ends the sweep likewise, and once there is space it continues") {
  const SweptStudy c;
  const std::string disk = c.path("disk");
  std::filesystem::create_directory(disk);
  const std::string script = c.folder.write("fill.sh",
                                            "mount -t tmpfs -o size=96k none \"$1\" || exit 77\n"
                                            "\"${@:2}\" 2>\"$1.message\"; echo \"exit code $?\"\n"
                                            "mount -o remount,size=4m none \"$1\"\n"
                                            "\"${@:2}\" --resume\n");
  Arguments in_namespace = {"/usr/bin/unshare", "--mount", "/bin/bash", script, disk};
  if (geteuid() != 0) in_namespace.insert(in_namespace.begin() + 1, "--map-root-user");
  const Outcome outcome = run_with(in_namespace, c.arguments("disk/table.sqlite"));
  const std::string message = content_of(disk + ".message");
  CAPTURE(outcome.err);
  if (message.empty()) {
    MESSAGE("skipped: this user may not mount a disk");
    return;
  }
  CHECK(message.starts_with("moeline: " + disk + "/table.sqlite: cannot be written: database or disk is full; "));
  CHECK(message.ends_with(" of 24 points are stored, and --resume continues\n"));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == "exit code 3\n" + c.sweep("undisturbed.sqlite").out);
}

TEST_CASE("a file or a folder without permission to write is refused before anything is simulated") {
  const SweptStudy c;
  namespace fs = std::filesystem;
  fs::create_directory(c.path("folder"));
  REQUIRE(c.sweep("folder/table.sqlite").exit_code == 0);
  const std::string before = content_of(c.path("folder/table.sqlite"));
  fs::permissions(c.path("folder/table.sqlite"), fs::perms::owner_read);
  fs::permissions(c.path("folder"), fs::perms::owner_read | fs::perms::owner_exec);
  if (binds(c.path("folder"))) {
    check_not_permitted(c, "folder/table.sqlite", "Permission denied");
    check_not_permitted(c, "folder/new.sqlite", "Permission denied");
    CHECK(content_of(c.path("folder/table.sqlite")) == before);
  }
  fs::permissions(c.path("folder"), fs::perms::owner_all);
}

TEST_CASE("a table in a folder that is not there is refused before anything is simulated") {
  const SweptStudy c;
  check_refused(c.arguments("no/such/folder.sqlite"), c.path("no/such/folder.sqlite"),
                "cannot be opened for writing: No such file or directory");
}

}  // TEST_SUITE("sweep/full_disk")
