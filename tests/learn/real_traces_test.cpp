// Traces of other people's servers (shared/data/traces/real, its README has their settings): what is recovered of each,
// and how much of its time finds an operator.
#include <algorithm>
#include <map>
#include <sstream>

#include "base/file.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("learn/real_traces") {

using namespace moeline::testing;

namespace {

struct RealTrace {
  const char *name, *model;
  std::map<std::string, std::string> settings;
};

const std::vector<RealTrace>& decode_traces() {
  static const std::vector<RealTrace> traces = {
      {"b300_sglang_qwen3_30b_decode",
       "Qwen--Qwen3-30B-A3B",
       {{"hardware", "b300"},
        {"kernels", "sglang"},
        {"workload.phase", "decode"},
        {"workload.batch_size", "16"},
        {"workload.kv_len", "512"},
        {"parallelism.tp", "1"},
        {"launch", "graph"}}},
      {"mi300x_sglang_qwen3_30b_decode",
       "Qwen--Qwen3-30B-A3B",
       {{"hardware", "mi300x"}, {"workload.batch_size", "16"}, {"workload.kv_len", "512"}, {"launch", "graph"}}},
      {"mi300x_sglang_qwen3_8b_decode",
       "Qwen--Qwen3-8B",
       {{"hardware", "mi300x"}, {"workload.batch_size", "32"}, {"workload.kv_len", "1025"}, {"launch", "graph"}}},
      {"mi300x_vllm_gpt_oss_20b_decode",
       "openai--gpt-oss-20b",
       {{"hardware", "mi300x"}, {"workload.batch_size", "32"}, {"workload.kv_len", "1721"}, {"launch", "graph"}}}};
  return traces;
}

std::string file_of(const char* name) { return data_folder() / ("traces/real/" + std::string(name) + ".json.gz"); }
std::string model_of(const char* name) { return data_folder() / "configs" / name; }

std::map<std::string, std::string> settings_of(const rapidjson::Document& report) {
  std::map<std::string, std::string> settings;
  for (const auto& setting : report["settings"].GetArray()) {
    settings[setting["key"].GetString()] = setting["value"].GetString();
  }
  return settings;
}

}  // namespace

TEST_CASE("a decode step of a server is recovered, and once learnt predicted within 4 %") {
  for (const RealTrace& trace : decode_traces()) {
    CAPTURE(trace.name);
    if (!present(file_of(trace.name))) continue;
    const TemporaryFolder folder;
    const auto report =
        in_json({"learn", file_of(trace.name), "--model", model_of(trace.model), "-o", folder.path() / "out"});
    const auto settings = settings_of(report);
    for (const auto& expected : trace.settings) {
      CAPTURE(expected.first);
      REQUIRE(settings.contains(expected.first));
      CHECK(settings.at(expected.first) == expected.second);
    }
    CHECK(report["assigned"].GetDouble() > 0.95);
    const auto& step = report["step_us"];
    CHECK(step["after"].GetDouble() == doctest::Approx(step["measured"].GetDouble()).epsilon(0.04));
  }
}

// FACTS.md, "Routing of real traffic": the expert products of the median layer take 63 us, in which no more than 51.5
// of 128 experts can have been read at the HBM's peak.
TEST_CASE("the experts that a step's tokens reached are told from the time of their products") {
  if (!present(file_of("b300_sglang_qwen3_30b_decode"))) return;
  const TemporaryFolder folder;
  const auto report = in_json({"learn", file_of("b300_sglang_qwen3_30b_decode"), "--model",
                               model_of("Qwen--Qwen3-30B-A3B"), "-o", folder.path() / "out"});
  std::string list = settings_of(report).at("routing.experts_hit");
  std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == ','; });
  std::vector<double> hit;
  std::istringstream words(list);
  for (double each = 0; words >> each;) hit.push_back(each);
  REQUIRE(hit.size() == 48);
  CHECK(*std::max_element(hit.begin(), hit.end()) == doctest::Approx(75).epsilon(0.05));
  std::nth_element(hit.begin(), hit.begin() + 24, hit.end());
  CHECK(hit[24] == doctest::Approx(51.5).epsilon(0.03));
}

// The data-sheet profile has MI300X's facts and an H100's kernels: no table of its own.
TEST_CASE(
    "one decode trace on a machine without tables brings another model there within 10 %, which it was 40 % off") {
  if (!present(file_of("mi300x_sglang_qwen3_30b_decode"))) return;
  const TemporaryFolder folder;
  const std::string whole = moeline::read_text(std::filesystem::path(MOELINE_SOURCE_DIR) / "hwprofiles/mi300x.yaml");
  const std::string facts = whole.substr(0, whole.find("\n# Written by"));
  const std::string sheet = folder.write("sheet.yaml", replaced(facts, "name: mi300x", "name: sheet"));
  const auto learn = [&](const char* trace, const char* model, const std::string& hardware, const char* out) {
    return in_json(
        {"learn", file_of(trace), "--model", model_of(model), "--hardware", hardware, "-o", folder.path() / out});
  };
  const auto error = [](const rapidjson::Document& report) {
    const auto& step = report["step_us"];
    return step["settled"].GetDouble() / step["measured"].GetDouble() - 1;
  };
  const char* other = "mi300x_sglang_qwen3_8b_decode";
  (void)learn("mi300x_sglang_qwen3_30b_decode", "Qwen--Qwen3-30B-A3B", sheet, "from");
  CHECK(error(learn(other, "Qwen--Qwen3-8B", sheet, "before")) < -0.4);
  CHECK(std::abs(error(learn(other, "Qwen--Qwen3-8B", folder.path() / "from/machine.yaml", "after"))) < 0.1);
}

}  // TEST_SUITE("learn/real_traces")
