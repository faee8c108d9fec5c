// What cannot be written is one message and exit code 3; what was there stays, and nothing half-written is left.
#include <filesystem>

#include "tests/support/hindered.hpp"
#include "tests/support/trace_text.hpp"

TEST_SUITE("cli/failed_writes") {

namespace fs = std::filesystem;
using namespace moeline::testing;

namespace {

std::string kernels(int count) {
  std::string events;
  for (int i = 0; i < count; ++i) events += "," + kernel(std::to_string(20 * i), "10", i + 1);
  return events;
}

// Every kind of file that a command writes.
struct Writers {
  ValidScenario scenario;
  TemporaryFolder target;
  std::string trace = scenario.folder.write("trace.json", trace_of(gpu_range("attn", "0", "5000") + kernels(100)));
  std::string table = source("calib/data/low_latency_hold.csv").string();

  struct Written {
    std::string file;
    Arguments call;
  };
  [[nodiscard]] std::vector<Written> all() const {
    const auto in_target = [&](const std::string& name) { return target / name; };
    return {
        {in_target("a.json"), scenario.with({"--trace", in_target("a.json")})},
        {in_target("a.html"), scenario.with({"--html", in_target("a.html")})},
        {in_target("a.svg"), scenario.with({"--svg", in_target("a.svg")})},
        {in_target("explained.html"), {"explain", trace, "--html", in_target("explained.html")}},
        {in_target("graph.json"), {"replay", trace, "--graph", in_target("graph.json")}},
        {in_target("profile.yaml"), {"calibrate", table, "--kernels", "x-2025-01", "-o", in_target("profile.yaml")}},
        {in_target("run/metrics.json"), scenario.with({"-o", in_target("run")})}};
  }
};

bool is_one_message(const Outcome& outcome) {
  return outcome.err.starts_with("moeline: ") && std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1;
}

std::size_t files_in(const fs::path& folder) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) files += entry.is_regular_file() ? 1 : 0;
  return files;
}

}  // namespace

TEST_CASE("a file that can grow no further is refused by one message, and what was there stays") {
  const Writers writers;
  for (const auto& [file, call] : writers.all()) {
    const std::string line = joined(call);
    CAPTURE(line);
    REQUIRE(run_moeline(call).exit_code == 0);
    const std::string before = content_of(file);
    const std::size_t files = files_in(writers.target.path());
    const Outcome full = run_with_limit(1, call);
    CAPTURE(full.err);
    CHECK(full.exit_code == 3);
    CHECK(full.out.empty());
    CHECK(is_one_message(full));
    CHECK(full.err.find("cannot be written: File too large") != std::string::npos);
    CHECK(content_of(file) == before);
    CHECK(files_in(writers.target.path()) == files);
  }
}

TEST_CASE("a folder without permission to write is told by name, and what is in it stays") {
  const Writers writers;
  const auto [file, call] = writers.all().front();
  REQUIRE(run_moeline(call).exit_code == 0);
  const std::string before = content_of(file);
  fs::permissions(writers.target.path(), fs::perms::owner_read | fs::perms::owner_exec);
  if (binds(writers.target.path())) {
    const Outcome refused = run_with(kWithPermissions, call);
    CHECK(refused.exit_code == 3);
    CHECK(refused.err == "moeline: " + file + ": cannot be written: Permission denied\n");
    CHECK(content_of(file) == before);
  }
  fs::permissions(writers.target.path(), fs::perms::owner_all);
}

TEST_CASE("a link to a file stays a link, and the file that it stands for is written") {
  const Writers writers;
  const std::string file = writers.target / "real.svg", link = writers.target / "link.svg";
  fs::create_symlink("real.svg", link);
  writers.target.write("real.svg", "");
  REQUIRE(run_moeline(writers.scenario.with({"--svg", link})).exit_code == 0);
  CHECK(fs::is_symlink(link));
  CHECK(content_of(file).starts_with("<svg"));
}

TEST_CASE("results that stdout does not take are one message and exit code 3") {
  const Writers writers;
  const std::vector<Arguments> calls = {{"analyze", writers.trace},
                                        {"model", "deepseek-v3"},
                                        {"list", "hardware"},
                                        {"price", "h800", "gemm:m=128"},
                                        {"--help"},
                                        {"simulate", "--help"}};
  for (const Arguments& call : calls) {
    for (const std::string redirection : {">/dev/full", ">&-"}) {
      CAPTURE(joined(call) + redirection);
      const Outcome outcome = run_redirected(redirection, call);
      CAPTURE(outcome.err);
      CHECK(outcome.exit_code == 3);
      CHECK(is_one_message(outcome));
    }
  }
}

TEST_CASE("with stdout closed nothing that is printed gets into the files that are written") {
  const Writers writers;
  for (const auto& [file, call] : writers.all()) {
    const std::string line = joined(call);
    CAPTURE(line);
    REQUIRE(run_moeline(call).exit_code == 0);
    const std::string before = content_of(file);
    CHECK(run_redirected(">&-", call).exit_code == 3);
    if (file.ends_with("metrics.json")) continue;  // it has simulate_ms
    CHECK(content_of(file) == before);
  }
}

TEST_CASE("messages that stderr does not take change no exit code") {
  const Writers writers;
  for (const std::string redirection : {"2>/dev/full", "2>&-"}) {
    CAPTURE(redirection);
    CHECK(run_redirected(redirection, {"simulate", "nowhere.yaml"}).exit_code == 3);
    CHECK(run_redirected(redirection, {"simulat"}).exit_code == 2);
    CHECK(run_redirected(redirection, {"list", "hardware"}).exit_code == 0);
  }
}

TEST_CASE("a pipe whose reader has read enough ends the program silently, as any other") {
  const std::string script = "(sleep 0.2; \"$0\" list hardware; echo $? >&2) | true";
  const Outcome outcome = run_process({"/bin/bash", "-c", script, MOELINE_BINARY});
  CHECK(outcome.err == "141\n");  // 128 + SIGPIPE
}

}  // TEST_SUITE("cli/failed_writes")
