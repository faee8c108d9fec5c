// What a call leaves: its exit code, what it prints, and files that are whole or absent.
#include <rapidjson/document.h>

#include <map>
#include <sstream>

#include "experiments/cli/output/simulate_output.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/pipeline.hpp"

TEST_SUITE("cli/results") {

namespace fs = std::filesystem;
using namespace moeline;
using namespace moeline::testing;

TEST_CASE("wrong usage exits 2") {
  const ValidScenario valid;
  for (const Arguments& arguments : {Arguments{},
                                     {"simulat"},
                                     {"simulate"},
                                     {"--frobnicate"},
                                     valid.with({"--frobnicate"}),
                                     valid.with({"another.yaml"}),
                                     valid.with({"--set"}),
                                     valid.with({"--format", "xml"}),
                                     valid.with({"--kernel-naming", "x"}),
                                     valid.with({"--ts-resolution", "ps"}),
                                     {"compare", valid.file},
                                     {"compare", valid.file, valid.file, "--layers", "first"},
                                     {"calibrate"},
                                     {"calibrate", "a.csv"},
                                     {"list"},
                                     {"list", "cars"}}) {
    const Outcome outcome = run_moeline(arguments);
    CAPTURE(joined(arguments));
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK_FALSE(outcome.err.empty());
  }
}

TEST_CASE("list refuses unknown names") {
  check_refused({"list", "models", "deepseek-v33"}, "unknown model 'deepseek-v33'", "did you mean 'deepseek-v3'?");
  check_refused({"list", "hardware", "h801"}, "unknown hardware 'h801'", "did you mean 'h800'?");
  check_refused({"list", "schedules", "sequentail"}, "unknown schedule 'sequentail'", "did you mean 'sequential'?");
}

TEST_CASE("help and lists are results: stdout, exit code 0") {
  for (const Arguments& arguments : {Arguments{"--help"},
                                     {"simulate", "--help"},
                                     {"compare", "--help"},
                                     {"calibrate", "--help"},
                                     {"list", "--help"},
                                     {"list", "models"},
                                     {"list", "hardware"},
                                     {"list", "schedules"},
                                     {"list", "models", "deepseek-v3"},
                                     {"list", "hardware", "h800"},
                                     {"list", "schedules", "dualpipe-chunk"},
                                     {"list", "schedules", "sequential"}}) {
    const Outcome outcome = run_moeline(arguments);
    CAPTURE(joined(arguments));
    CHECK(outcome.exit_code == 0);
    CHECK_FALSE(outcome.out.empty());
    CHECK(outcome.err.empty());
  }
  CHECK(run_moeline({"list", "models"}).out.find("deepseek-v3\n") != std::string::npos);
}

TEST_CASE("--strict turns extrapolated prices into exit code 1") {
  const ValidScenario valid;
  const Arguments smaller = {"--set", "workload.seq_len=1000", "--set", "routing={distribution: balanced}"};
  Arguments strict = smaller;
  strict.emplace_back("--strict");
  const Outcome warned = run_moeline(valid.with(smaller));
  CHECK(warned.exit_code == 0);
  CHECK(warned.err.find("moeline: warning: ") == 0);
  const Outcome refused = run_moeline(valid.with(strict));
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("extrapolated") != std::string::npos);
}

TEST_CASE("--format json prints one object with the keys of the contract") {
  const ValidScenario valid;
  const Outcome outcome = run_moeline(valid.with({"--format", "json"}));
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document result;
  result.Parse(outcome.out.c_str());
  REQUIRE_FALSE(result.HasParseError());
  REQUIRE(result.IsObject());
  for (const char* key : {"schema_version", "scenario", "metrics", "classes", "phases", "provenance", "warnings"}) {
    CHECK_MESSAGE(result.HasMember(key), key);
  }
  CHECK(result["schema_version"].GetInt() == 1);
  for (const char* key : {"step_ms", "layer_us", "mfu", "compute_busy_us", "comm_busy_us", "exposed_comm_us",
                          "overlap_fraction", "bubble_fraction", "tasks", "simulate_ms"}) {
    CAPTURE(key);
    REQUIRE(result["metrics"].HasMember(key));
    CHECK(result["metrics"][key].GetDouble() >= 0);
  }
  for (const char* key : {"model", "hardware", "kernels", "schedule", "parallelism", "workload", "comm", "routing",
                          "layers", "overlap", "launch", "seed"}) {
    CHECK_MESSAGE(result["scenario"].HasMember(key), key);
  }
  REQUIRE(result["classes"].Size() > 0);
  for (const char* key : {"class", "busy_us_per_layer", "solo_us_per_layer"}) {
    CHECK_MESSAGE(result["classes"][0].HasMember(key), key);
  }
  CHECK(result["phases"].Size() == 20);  // ten of each layer
  for (const char* key :
       {"rank", "micro_batch", "layer", "phase", "stream", "start_us", "end_us", "busy_us", "solo_us"}) {
    CHECK_MESSAGE(result["phases"][0].HasMember(key), key);
  }
}

TEST_CASE("where one GPU stands for its group the table says that it is the slowest, and by how much") {
  const std::string scenario = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const auto says = [&](const char* change) {
    const Outcome outcome = run_moeline({"simulate", scenario, "--set", "layers=2", "--set", change});
    CHECK(outcome.exit_code == 0);
    return outcome.out.find("of the group's 128 GPUs this is the slowest") != std::string::npos;
  };
  CHECK(says("speed_spread=0.01"));
  CHECK_FALSE(says("speed_spread=0"));  // GPUs that are alike
  CHECK_FALSE(says("ranks=all"));       // every one is there
}

TEST_CASE("--format csv prints a header and one line per phase") {
  const ValidScenario valid;
  const Outcome outcome = run_moeline(valid.with({"--format", "csv"}));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.starts_with("rank,micro_batch,layer,phase,stream,start_us,end_us,busy_us,solo_us\n"));
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 21);
}

TEST_CASE("-o holds a manifest, the metrics, and traces alone in traces/") {
  const ValidScenario valid;
  const TemporaryFolder target;
  const std::string run = target / "run";
  REQUIRE(run_moeline(valid.with({"-o", run, "--trace", target / "alone.json"})).exit_code == 0);
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), run).string());
  }
  std::sort(files.begin(), files.end());
  CHECK(files == std::vector<std::string>{"manifest.json", "metrics.json", "traces/rank_0.json"});
  for (const std::string& file : files) {
    rapidjson::Document document;
    document.Parse(content_of(fs::path(run) / file).c_str());
    CHECK_MESSAGE(!document.HasParseError(), file);
  }
  CHECK(content_of(run + "/traces/rank_0.json") == content_of(target / "alone.json"));
}

TEST_CASE("equal input gives equal bytes, simulate_ms aside") {
  const ValidScenario valid;
  const auto result = [&] {
    std::string out = run_moeline(valid.with({"--format", "json"})).out;
    const std::size_t timed = out.find("\"simulate_ms\"");
    REQUIRE(timed != std::string::npos);
    return out.erase(timed, out.find('\n', timed) - timed);
  };
  CHECK(result() == result());
}

TEST_CASE("every pipeline is deterministic") {
  for (const PipelineCase& c : all_schedules()) {
    CAPTURE(c.schedule);
    CHECK(to_csv(run_case(c)) == to_csv(run_case(c)));
  }
}

TEST_CASE("output that cannot be written is refused and leaves nothing behind") {
  const ValidScenario valid;
  const TemporaryFolder target;
  const std::string missing = target / "missing/trace.json";
  const std::string file = target.write("file", "mine\n");
  check_refused(valid.with({"--trace", missing}), missing + ": ", "there is no folder for it");
  check_refused(valid.with({"--trace", target.path()}), target.path().string() + ": ", "is a folder, not a file");
  check_refused(valid.with({"-o", file}), file + ": ", "cannot be created");
  check_refused(valid.with({"-o", file + "/below"}), file + "/below: ", "cannot be created");
  CHECK(content_of(file) == "mine\n");
  CHECK(std::distance(fs::directory_iterator(target.path()), {}) == 1);
}

TEST_CASE("bad input writes no output at all") {
  const ValidScenario valid;
  const TemporaryFolder target;
  check_refused(valid.with({"--set", "layers=0", "--trace", target / "trace.json", "-o", target / "run"}),
                "--set: ", "");
  CHECK(fs::is_empty(target.path()));
}

TEST_CASE("a device is written to, not replaced by a file") {
  const ValidScenario valid;
  const std::string link = valid.folder / "null";
  fs::create_symlink("/dev/null", link);  // were it replaced, it would be the link alone
  CHECK(run_moeline(valid.with({"--trace", link})).exit_code == 0);
  CHECK(fs::is_symlink(link));
}

TEST_CASE("what a step has once is not listed as a layer's, and what it has several times is their sum") {
  const std::string decode = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const auto rows_below = [&](const std::string& heading, const Arguments& more) {
    Arguments call = {"simulate", decode};
    call.insert(call.end(), more.begin(), more.end());
    std::istringstream lines(run_moeline(call).out);
    std::map<std::string, double> rows;
    bool below = false;
    for (std::string line, name; std::getline(lines, line);) {
      if (line.empty()) below = false;
      std::istringstream cells(line);
      if (below && cells >> name) cells >> rows[name];
      below = below || line.starts_with(heading);
    }
    return rows;
  };
  const Arguments drafts = {"--set", "workload.query_len=3"};
  const auto layer = rows_below("phase: span, us per layer", drafts);
  const auto step = rows_below("phase: span, us per step", drafts);
  CHECK(layer.size() == 6);
  CHECK(layer.contains("mlp"));
  CHECK(step.size() == 4);
  for (const char* phase : {"embedding", "lm_head", "mtp", "draft_head"}) CHECK(step.contains(phase));
  const auto one_draft = rows_below("phase: span, us per step", {"--set", "workload.query_len=2"});
  CHECK(step.at("draft_head") == doctest::Approx(2 * one_draft.at("draft_head")).epsilon(1e-3));
  CHECK(rows_below("phase: span, us per step", {"--set", "layers=2"}).empty());
  CHECK(rows_below("phase: span, us per layer", {"--set", "layers=2"}).size() == 6);
}

}  // TEST_SUITE("cli/results")
