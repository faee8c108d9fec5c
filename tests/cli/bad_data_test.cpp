// Traces to compare with and tables to calibrate on are refused by name; no profile is lost to a bad one.
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("cli/bad_data") {

namespace fs = std::filesystem;
using namespace moeline::testing;

namespace {

bool has_temporary_file(const fs::path& folder) {
  const auto entries = fs::recursive_directory_iterator(folder);
  return std::any_of(begin(entries), end(entries),
                     [](const fs::directory_entry& entry) { return entry.path().extension() == ".tmp"; });
}

}  // namespace

TEST_CASE("a trace that cannot be read is refused") {
  const ValidScenario valid;
  const auto refused = [&](const std::string& trace, const std::string& says) {
    check_refused({"compare", valid.file, trace}, trace, says);
  };
  const auto refused_content = [&](const std::string& content, const std::string& says) {
    refused(valid.folder.write("trace.json", content), says);
  };
  refused(valid.folder / "absent.json", ": no such file");
  refused(valid.folder.path().string(), ": is a folder, not a file");
  refused_content("", ": is empty");
  refused_content({'\x7f', 'E', 'L', 'F', '\0', '\1', '\2'}, ": not valid JSON");
  refused_content(std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00", 8), "gzip");
  refused_content(R"({"traceEvents": [{"ph": "X")", ": truncated");
  refused_content(R"({"events": []})", ": not a trace");
  refused_content(R"({"traceEvents": []})", ": no GPU events");
  refused_content(std::string(200'000, '['), ": ");
}

TEST_CASE("compare refuses layers that are not in both") {
  const ValidScenario valid;
  const auto refused = [&](const std::string& layers, const std::string& says) {
    check_refused({"compare", valid.file, valid.file, "--layers", layers}, "--layers: ", says);
  };
  refused("7", "layer 7 is not in both; these are: 0, 1");
  refused("0,2", "layer 2 is not in both");
  refused("-1", "layer -1 is not in both");
}

TEST_CASE("compare refuses to hold prefill against decode") {
  const std::string prefill = (source("experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml")).string();
  const std::string decode = (source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml")).string();
  check_refused({"compare", prefill, decode}, decode, "is decode, and " + prefill + " is prefill");
}

TEST_CASE("calibrate refuses a damaged table and leaves the old profile") {
  const TemporaryFolder folder;
  const std::string old = content_of(source("hwprofiles/h100.yaml"));
  const std::string profile = folder.write("profile.yaml", old);
  const auto refused = [&](const std::string& table, const std::string& says) {
    check_refused({"calibrate", table, "-o", profile}, table, says);
    CHECK(content_of(profile) == old);
    CHECK_FALSE(has_temporary_file(folder.path()));
  };
  const auto refused_content = [&](const std::string& content, const std::string& says) {
    refused(folder.write("table.csv", content), says);
  };
  refused(folder / "absent.csv", ": no such file");
  refused(folder.path().string(), ": is a folder, not a file");
  refused_content("", ": is empty");
  refused_content(std::string("a,b\n\0\1", 6), ":2: is not a text file: its byte 5 is 0x00");
  refused_content("a,b\n1,2\n", ":1: is not a table that calibrate knows");
  refused_content("ep,ep\n1,2\n", ":1: column 'ep' is repeated");
  refused_content("ep,dispatch_transmit_us\n16,1\n", ":1: has no column 'num_token'");
  refused_content("launch_us,idx\n1,0\n", ":1: has no column");
  const std::string header = "ep,num_token,dispatch_sms,combine_sms,dispatch_transmit_us,combine_transmit_us\n";
  refused_content(header + "16,4096,8\n", ":2: has 3 cells, its header 6");
  refused_content(header + "16,4096,8,8,1,1\n16,4096,8,8,1,1,1\n", ":3: has 7 cells, its header 6");
  refused_content(header + "16,4096,8,8,nan,1\n", ":2: dispatch_transmit_us: 'nan' is not a number");
  refused_content(header + "16,many,8,8,1,1\n", ":2: num_token: 'many' is not a number");
}

TEST_CASE("calibrate says at the row why a model or a value of it does not fit a table") {
  const TemporaryFolder folder;
  const std::string published = source("calib/data/deepep_published.csv").string();
  const auto refused = [&](const std::string& file, const std::string& model, int line, const std::string& says) {
    check_refused({"calibrate", file, "--model", model, "-o", folder / "p.yaml"}, file + ":" + std::to_string(line),
                  says);
  };
  refused(published, "llama-3.1-405b", 2, "ep: the model 'llama-3.1-405b' has no routed experts");
  refused(published, "mixtral-8x7b", 4, "ep: 16 must divide the 8 experts");
  const std::string bad = folder.write("bad.csv", replaced(content_of(published), "dispatch", "dispath"));
  refused(bad, "deepseek-v3", 2, "op: 'dispath' is neither dispatch nor combine");
  const std::string silent = folder.write("silent.csv", "kernels,ep,op,holds_sms_us\n");
  check_refused({"calibrate", silent, "-o", folder / "p.yaml"}, silent + ": ", "there are no measurements to fit");
}

TEST_CASE("calibrate refuses unknown names") {
  const TemporaryFolder folder;
  const std::string table = folder.write("table.csv", "a,b\n1,2\n");
  check_refused({"calibrate", table, "-o", folder / "p.yaml", "--hardware", "h801"}, "unknown hardware 'h801'",
                "did you mean 'h800'?");
  check_refused({"calibrate", table, "-o", folder / "p.yaml", "--model", "deepseek-v33"},
                "unknown model 'deepseek-v33'", "did you mean 'deepseek-v3'?");
  check_refused({"calibrate", table, "-o", folder / "p.yaml", "--kernels", "mine"}, "kernel set 'mine'",
                "must be named NAME-DATE");
  CHECK_FALSE(fs::exists(folder / "p.yaml"));
}

}  // TEST_SUITE("cli/bad_data")
