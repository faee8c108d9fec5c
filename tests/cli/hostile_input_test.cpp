// Small files that ask for much: refused quickly and within little memory, by a message that says how much is too much.
#include "tests/support/hindered.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/trace_text.hpp"

TEST_SUITE("cli/hostile_input") {

using namespace moeline::testing;

namespace {

std::string repeated(const std::string& part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

constexpr std::size_t kMega = 1U << 20U;

/// Exit code 3 and one message, in 2 GB of memory and 20 s of a core, which is a lot on a slow machine.
void check_refused_in_bounds(const Arguments& call, const std::string& says) {
  const std::string limits = kSanitized ? "" : "ulimit -v 2000000 -t 20; ";
  const Arguments bounded = {"/bin/bash", "-c", limits + "exec \"$0\" \"$@\""};
  const Outcome outcome = run_with(bounded, call);
  CAPTURE(joined(call));
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK_MESSAGE(outcome.err.find(says) != std::string::npos, "does not say: " << says);
}

void check_scenario(const std::string& text, const std::string& says) {
  const TemporaryFolder folder;
  check_refused_in_bounds({"simulate", folder.write("scenario.yaml", text)}, says);
}

// What `text` packs to, so many times over: gzip files may follow each other.
std::string bomb(const std::string& begin, const std::string& text, std::size_t times) {
  return gzipped(begin) + repeated(gzipped(text), times);
}

}  // namespace

TEST_CASE("aliases and anchors that stand for billions of values are refused") {
  std::string aliases = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    aliases += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) aliases += std::string(j > 0 ? ", " : "") + "*a" + std::to_string(i - 1);
    aliases += "]\n";
  }
  check_scenario(aliases, "holds more than 1000000 values");
  std::string anchors = "a: ";
  for (int i = 0; i < 30; ++i) anchors += "&a" + std::to_string(i) + " [";
  anchors += repeated("1,", 200'000) + "1" + repeated("]", 30) + "\n";
  check_scenario(anchors, "holds more than 1000000 values");
  check_scenario("a: " + repeated("[", 100'000), "nested too deeply");
  check_scenario("a: [" + repeated("{},", 300'000) + "{}]\n", "unknown key 'a'");
}

TEST_CASE("numbers that no machine could count are refused where they stand") {
  const std::vector<std::pair<const char*, const char*>> changes = {
      {"layers: 2", "layers: 1000000000"},
      {"samples: 1", "samples: 1000000000"},
      {"ep: 64, dp: 64", "ep: 1000000000, dp: 64"},
      {"seq_len: 4096", "seq_len: 1000000000000"},
      {"micro_batch_size: 1", "micro_batch_size: 2000000000"}};
  for (const auto& [from, to] : changes) check_scenario(replaced(kScenario, from, to), "must be ");
  const std::string serve = source("experiments/studies/serve_requests_h200/scenario.yaml").string();
  check_refused_in_bounds({"simulate", serve, "--set", "workload.requests=1000000000"}, "must be from 1 to 1000000");
}

TEST_CASE("a model of a billion layers or experts is refused") {
  const std::string mixtral = content_of(source("tests/fuzz/corpus/model/mixtral.json"));
  const TemporaryFolder folder;
  for (const auto& [from, to] : {std::pair{"\"num_hidden_layers\": 32", "\"num_hidden_layers\": 1000000000"},
                                 {"\"num_local_experts\": 8", "\"num_local_experts\": 1000000000"}}) {
    check_refused_in_bounds({"model", folder.write("config.json", replaced(mixtral, from, to))}, "must be from ");
  }
}

TEST_CASE("tables with lines of millions of cells, or millions of rows, are refused or read within their size") {
  const TemporaryFolder folder;
  const auto balance = [&](const std::string& content, const std::string& says) {
    check_refused_in_bounds({"balance", folder.write("loads.csv", content), "--gpus", "8"}, says);
  };
  balance(repeated("a,", 30 * kMega) + "\n", "has more than 65536 columns");
  balance(repeated("1,", 30 * kMega) + "1\n", "has more than 65536 columns");
  balance(repeated("1\n", 30 * kMega), "at most 4096 are read");
  balance("layer,expert,load\n" + repeated(",,\n", 20 * kMega), "is not a number");
  balance(std::string(65 * kMega, '1'), "is larger than 64 MiB");
  std::string layers = "token,layer,expert0\n";
  for (int i = 0; i < 10'000; ++i) layers += "0," + std::to_string(i) + ",4095\n";
  balance(layers, "has more than 4096 layers");
}

TEST_CASE("gzip that unpacks to gigabytes is refused by what it holds") {
  const TemporaryFolder folder;
  const auto trace = [&](const std::string& packed, const std::string& says) {
    check_refused_in_bounds({"analyze", folder.write("trace.json.gz", packed)}, says);
  };
  trace(bomb("{\"traceEvents\": [{\"name\": \"", std::string(16 * kMega, 'a'), 20),
        "it has a string, or brackets in each other, of more than");
  trace(bomb("{\"traceEvents\": ", std::string(16 * kMega, '['), 20),
        "it has a string, or brackets in each other, of more than");
  trace(bomb("{\"traceEvents\": [{\"args\": {\"grid\": [1", repeated(",1", 8 * kMega), 20), "has a list of more than");
  const std::string table = folder.write("gemm_sglang.csv.gz", bomb("a,b\n", std::string(32 * kMega, 'a'), 12));
  check_refused_in_bounds({"calibrate", table, "--hardware", "b200", "--kernels", "sglang-9", "--date", "2026-01", "-o",
                           folder / "profile.yaml"},
                          "is larger than 256 MiB, unpacked");
}

TEST_CASE("a study of a trillion points, or of conditions without end, is refused before its points are made") {
  const TemporaryFolder folder;
  const std::string head = "schema: 1\nscenario: " + folder.write("scenario.yaml", kScenario) + "\n";
  const auto study = [&](const std::string& rest, const std::string& says) {
    check_refused_in_bounds({"sweep", folder.write("study.yaml", head + rest), "-o", folder / "table.sqlite"}, says);
  };
  const std::string axis = ": {from: 1, to: 10000, step: 1}\n";
  study("axes:\n  a" + axis + "  b" + axis + "  c" + axis, "have 1e+12 combinations");
  study("axes:\n  a" + axis + "  b: {from: 1, to: 900, step: 1}\n  c: [1]\n", "values are swept");
  study("axes: {a: {from: 1, to: 1e12, step: 1}}\n", "gives more than 1000000 values");
  study("axes: {layers: [1]}\nwhere: [\"" + repeated("(", 100'000) + "\"]\n", "more than 1000 characters");
  study("axes: {layers: [1]}\nwhere: [\"" + repeated("(", 500) + "\"]\n", "is nested too deeply");
  study("axes: {layers: [1]}\nwhere: [" + repeated("1 < 2,", 1000) + "1 < 2]\n", "has more than 100 conditions");
  study("axes: {lears: {from: 1, to: 999999, step: 1}}\n", "made no scenario of any of the 999999 points");
}

TEST_CASE("a plan that crosses lists of thousands is refused before they are crossed") {
  const std::string plan = content_of(source("experiments/studies/serve_deepseek_v3_h800/plan.yaml"));
  const std::string training = content_of(source("experiments/studies/train_plans/plan.yaml"));
  const auto numbers = [](int last) {
    std::string list = "[1";
    for (int i = 2; i <= last; ++i) list += ", " + std::to_string(i);
    return list + "]";
  };
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::string& says) {
    check_refused_in_bounds({"plan", folder.write("plan.yaml", text)}, says);
  };
  refused(replaced(plan, "ep: [32]", "ep: " + numbers(2000)), "has more than 1000 values");
  refused(replaced(plan, "ep: [32], redundant_experts: [32]",
                   "ep: [32, 64], tp: " + numbers(1000) + ", redundant_experts: " + numbers(1000)),
          "at most a million are searched");
  refused(replaced(training, "tp: [2], pp: [8, 16], ep: [16]",
                   "cp: [1, 2], pp: [8], ep: " + numbers(1000) + ", tp: " + numbers(1000)),
          "at most a million are searched");
}

}  // TEST_SUITE("cli/hostile_input")
