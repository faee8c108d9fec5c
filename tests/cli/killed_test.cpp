// Killed at any moment, a command has lost nothing that was there and left nothing half-written. MOELINE_KILLS: how
// many times (tests/cli/killed.sh asks for 200).
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "base/file.hpp"
#include "experiments/sweep/store.hpp"
#include "tests/support/sweep.hpp"

TEST_SUITE("cli/killed") {

namespace fs = std::filesystem;
using namespace moeline;
using namespace moeline::testing;

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

int kills() {
  const char* set = std::getenv("MOELINE_KILLS");
  return set != nullptr ? std::atoi(set) : 20;
}

// Starts the program; kills it after so long, unless it has ended by then.
void run_and_kill_after(Milliseconds time, const Arguments& arguments) {
  Arguments call = {MOELINE_BINARY};
  call.insert(call.end(), arguments.begin(), arguments.end());
  std::vector<char*> words;
  for (std::string& word : call) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int stream : {0, 1, 2}) (void)::dup2(nothing, stream);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  std::this_thread::sleep_for(time);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = content_of(entry.path());
  }
  return files;
}

// The numbers of a run that are not the same twice.
std::string without_clock(const std::string& text) {
  const std::size_t at = text.find("\"simulate_ms\": ");
  return at == std::string::npos ? text : text.substr(0, at) + text.substr(text.find('\n', at));
}

/// A command that writes files, in two versions: what is there before, and what it would write.
struct Writing {
  std::string name;
  Arguments before, after;  // both into `folder`
  TemporaryFolder folder{};
  std::map<std::string, std::string> old_files{}, new_files{};
  Milliseconds takes{};

  void prepare() {
    REQUIRE(run_moeline(after).exit_code == 0);
    const auto start = std::chrono::steady_clock::now();
    REQUIRE(run_moeline(after).exit_code == 0);
    takes = std::chrono::steady_clock::now() - start;
    new_files = files_in(folder.path());
    REQUIRE(run_moeline(before).exit_code == 0);
    old_files = files_in(folder.path());
    REQUIRE(old_files != new_files);
  }

  // Every file is whole, of before or after; what was being written is beside it, and in nobody's way.
  void check() const {
    for (const auto& [file, content] : files_in(folder.path())) {
      const std::string which = name + ": " + file;
      CAPTURE(which);
      if (is_unfinished(file)) continue;
      const auto is = [&, &file = file, &content = content](const std::map<std::string, std::string>& files) {
        return files.contains(file) && without_clock(files.at(file)) == without_clock(content);
      };
      CHECK((is(old_files) || is(new_files)));
    }
    for (const auto& [file, content] : old_files) CHECK(fs::exists(folder.path() / file));
    CHECK(run_moeline(before).exit_code == 0);
  }

  // The file itself; the folder of a run has several.
  [[nodiscard]] std::size_t unfinished() const {
    std::size_t count = 0;
    for (const auto& [file, content] : files_in(folder.path())) count += is_unfinished(file) ? 1 : 0;
    return count;
  }
};

std::string experiment(const std::string& name) { return source("experiments/studies/" + name).string(); }

std::vector<std::unique_ptr<Writing>> writings() {
  std::vector<std::unique_ptr<Writing>> all;
  const auto add = [&](const std::string& name, const std::string& option, const std::string& file,
                       const Arguments& call, const Arguments& then, const Arguments& now) {
    Writing& writing = *all.emplace_back(new Writing{.name = name, .before = call, .after = call});
    for (Arguments* arguments : {&writing.before, &writing.after}) {
      arguments->insert(arguments->end(), {option, writing.folder / file});
    }
    writing.before.insert(writing.before.end(), then.begin(), then.end());
    writing.after.insert(writing.after.end(), now.begin(), now.end());
    writing.prepare();
  };
  const std::string decode = experiment("decode_deepseek_v3_h800_ep128/scenario.yaml");
  add("simulate -o", "-o", "run",
      {"simulate", decode, "--set", "layers=4", "--set", "ranks=all", "--trace-ranks", "0,1"}, {"--set", "seed=2"},
      {"--set", "seed=3"});
  add("simulate --html", "--html", "page.html", {"simulate", decode}, {"--set", "layers=8"}, {"--set", "layers=12"});
  add("calibrate -o", "-o", "profile.yaml", {"calibrate", source("calib/data/low_latency_hold.csv").string()},
      {"--kernels", "x-2025-01"}, {"--kernels", "x-2025-02"});
  add("search -o", "-o", "plan.yaml",
      {"search", decode, "--over", "sms", "--set", "layers=4", "--set", "schedule=single-batch"},
      {"--set", "workload.batch_size=32"}, {"--set", "workload.batch_size=64"});
  return all;
}

}  // namespace

TEST_CASE("whatever a killed command was to write is whole, of before or after") {
  std::mt19937 random(1);  // NOLINT: the same moments each time, as far as the machine lets them be
  const auto all = writings();
  std::size_t unfinished = 0;
  for (int i = 0; i < kills() - kills() / 2; ++i) {
    const Writing& writing = *all[static_cast<std::size_t>(i) % all.size()];
    const double from = i % 3 == 0 ? 0 : 0.8;  // files are written at the end
    run_and_kill_after(writing.takes * std::uniform_real_distribution(from, 1.1)(random), writing.after);
    unfinished += writing.unfinished();
    writing.check();
  }
  MESSAGE("found of unfinished files: " << unfinished);
}

TEST_CASE("a sweep killed again and again loses no point that it stored, and ends with the table of one that was not") {
  const SweptStudy c;
  const Study study = load_study(c.study);
  const auto start = std::chrono::steady_clock::now();
  const Outcome undisturbed = c.sweep("undisturbed.sqlite");
  const Milliseconds takes = std::chrono::steady_clock::now() - start;
  REQUIRE(undisturbed.exit_code == 0);
  std::mt19937 random(2);  // NOLINT: as above
  std::size_t stored = 0, tables = 0;
  for (int i = 0; i < kills() / 2; ++i) {
    const std::string table = c.path("table" + std::to_string(tables) + ".sqlite");
    run_and_kill_after(takes * std::uniform_real_distribution(0.0, 0.6)(random),
                       c.arguments(fs::path(table).filename(), {"--resume", "--workers", "1"}));
    if (!fs::exists(table) || fs::file_size(table) == 0) continue;
    Database database(table, Database::Open::existing);
    Statement integrity(database, "PRAGMA integrity_check");
    REQUIRE(integrity.step());
    CHECK(integrity.text(0) == "ok");
    Statement tables_there(database, "SELECT 1 FROM sqlite_master");
    if (!tables_there.step()) continue;  // killed before it had any: as good as none
    const std::size_t now = Store(table, study, Store::Mode::read).results().size();
    CHECK(now >= stored);
    stored = now;
    if (now < study.points.size() && i % 5 != 4) continue;
    CHECK(c.sweep(fs::path(table).filename(), {"--resume"}).out == undisturbed.out);
    ++tables;
    stored = 0;
  }
}

}  // TEST_SUITE("cli/killed")
