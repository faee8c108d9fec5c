// Names on the command line and in files: in whatever case, shown in ours; and the machine that a trace names.
#include <rapidjson/document.h>

#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/trace_text.hpp"

TEST_SUITE("cli/names") {

using namespace moeline::testing;

namespace {

std::string first_line(const Outcome& outcome) { return outcome.out.substr(0, outcome.out.find('\n')); }

// 2.4 GB in 1 ms: 2400 GB/s, where H200's HBM has 4800, and H20's 4000.
const std::string kCopy = slice("gpu_memcpy", "Memcpy DtoD", kStream7, times("30", "1000"),
                                R"("stream": 7, "correlation": 3, "bytes": 1200000000)");

std::string trace_on(const std::string& device) {
  return R"({"deviceProperties": [{"id": 0, "name": ")" + device + R"("}], "traceEvents": [)" + kernel("0", "10") +
         "," + kernel("20", "10", 2) + "," + kCopy + "]}";
}

// What analyze says of a trace on this device, with further arguments.
Outcome analyze(const std::string& device, const Arguments& more = {}) {
  const TemporaryFolder folder;
  Arguments arguments = {"analyze", folder.write("t.json", trace_on(device))};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_moeline(arguments);
}

bool says(const Outcome& outcome, const std::string& line) {
  return outcome.out.find(line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("names of a scenario may be written in any case, and are shown in ours") {
  const ValidScenario valid;
  const auto canonical = run_moeline(valid.with({"--set", "ranks=folded", "--set", "layers=2"}));
  REQUIRE(canonical.exit_code == 0);
  const Arguments in_capitals = {"--set", "model=DeepSeek-V3",
                                 "--set", "hardware=H800",
                                 "--set", "kernels=DEEPSEEK-2025-02",
                                 "--set", "schedule=DualPipe-Chunk",
                                 "--set", "workload.phase=TRAIN",
                                 "--set", "comm.mode=Normal",
                                 "--set", "launch=Stream",
                                 "--set", "overlap=Default",
                                 "--set", "ranks=Folded",
                                 "--set", "layers=2",
                                 "--set", "routing.distribution=Given"};
  const Outcome capitals = run_moeline(valid.with(in_capitals));
  CAPTURE(capitals.err);
  CHECK(capitals.out == canonical.out);
  CHECK(first_line(capitals).find("dualpipe-chunk: deepseek-v3 on 64 h800 (kernels deepseek-2025-02)") !=
        std::string::npos);

  Arguments as_json = in_capitals;
  as_json.insert(as_json.end(), {"--format", "JSON"});
  rapidjson::Document json;
  json.Parse(run_moeline(valid.with(as_json)).out.c_str());
  REQUIRE(!json.HasParseError());
  CHECK(json["scenario"]["model"] == "deepseek-v3");
  CHECK(json["scenario"]["hardware"] == "h800");
}

TEST_CASE("a folder that bears a model's name in another case is that folder") {
  const ValidScenario valid;
  std::filesystem::create_directory(valid.folder.path() / "DeepSeek-V3");
  check_refused(valid.with({"--set", "model=DeepSeek-V3"}), (valid.folder.path() / "DeepSeek-V3").string(),
                "no such file");
}

TEST_CASE("a misspelt name gets the name that was meant, whatever the case") {
  const ValidScenario valid;
  const auto suggests = [&](const std::string& assignment, const std::string& name) {
    check_refused(valid.with({"--set", assignment}), "--set: ", "did you mean '" + name + "'?");
  };
  suggests("hardware=H10O", "h100");
  suggests("hardware=H2000", "h200");
  suggests("model=DEEPSEEKV3", "deepseek-v3");
  suggests("schedule=DUALPIPE-CHUNKS", "dualpipe-chunk");
  suggests("Model=deepseek-v3", "model");  // a key in another case is another key
  suggests("hardware.SMS=3", "hardware.sms");
}

TEST_CASE("commands that take a name take it in any case") {
  CHECK(run_moeline({"list", "Hardware", "H800"}).out == run_moeline({"list", "hardware", "h800"}).out);
  CHECK(run_moeline({"list", "schedules", "DualPipe-Chunk"}).out ==
        run_moeline({"list", "schedules", "dualpipe-chunk"}).out);
  CHECK(run_moeline({"model", "DeepSeek-V3"}).out == run_moeline({"model", "deepseek-v3"}).out);
  const Outcome priced = run_moeline({"price", "H800", "GEMM:dtype=BF16,m=64", "--format", "json"});
  CAPTURE(priced.err);
  CHECK(priced.exit_code == 0);
  CHECK(priced.out.find("\"hardware\": \"h800\"") != std::string::npos);
  CHECK(priced.out.find("\"op\": \"gemm:dtype=BF16,m=64\"") != std::string::npos);
}

TEST_CASE("analyze prints the machine that the trace's device names") {
  CHECK(says(analyze("NVIDIA H200"), "machine: h200"));
  CHECK(says(analyze("NVIDIA GB200"), "machine: gb200-nvl72"));
  CHECK(says(analyze("NVIDIA H800"), "machine: h800"));
  CHECK(analyze("NVIDIA H200", {"--format", "json"}).out.find("\"hardware\": \"h200\"") != std::string::npos);
}

TEST_CASE(
    "shares of the peaks are those of the machine that the device names, and where it names none there are none") {
  const auto copies = [](const std::string& device) {
    const std::string out = analyze(device).out;
    const std::size_t row = out.find("\ncopy ");
    REQUIRE(row != std::string::npos);
    return out.substr(row + 1, out.find('\n', row + 1) - row - 1);
  };
  CHECK(copies("NVIDIA H200").ends_with(" 2400      50 %    100 %"));
  CHECK(copies("NVIDIA H20").ends_with(" 2400      60 %    100 %"));
  CHECK(copies("NVIDIA H100 PCIe").ends_with(" 2400         -    100 %"));
}

TEST_CASE("analyze prices a trace as no other machine than its own, and says that it knows none") {
  for (const char* device : {"NVIDIA H100 PCIe", "NVIDIA H20-3e", "NVIDIA GH200 480GB"}) {
    const Outcome outcome = analyze(device);
    CAPTURE(outcome.out);
    CHECK(says(outcome, "machine: unknown, no profile is that of '" + std::string(device) +
                            "'; --hardware names one, for shares of its peaks"));
    CHECK(analyze(device, {"--format", "json"}).out.find("\"hardware\"") == std::string::npos);
  }
  CHECK(says(analyze("NVIDIA H100 PCIe", {"--hardware", "H100"}), "machine: h100"));
}

}  // TEST_SUITE("cli/names")
