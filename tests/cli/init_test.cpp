// moeline init: what it writes runs as it stands.
#include "tests/support/capture.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("cli/init") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string begun(const std::string& purpose, const std::string& model, const std::string& hardware) {
  const Outcome outcome = run_moeline({"init", purpose, model, hardware});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return outcome.out;
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("what init writes of a step is simulated without a change, and fits the GPUs' memory") {
  const std::pair<const char*, const char*> cases[] = {
      {"deepseek-v3", "h800"}, {"qwen3-30b-a3b", "h200"}, {"llama-3.1-405b", "b200"}, {"gpt-oss-120b", "gb200-nvl72"}};
  for (const auto& [model, hardware] : cases) {
    for (const char* purpose : {"decode", "prefill"}) {
      const Outcome run = simulate_text(begun(purpose, model, hardware), {"--format", "json"});
      MOELINE_CAPTURE_BINDING(model);
      MOELINE_CAPTURE_BINDING(hardware);
      CAPTURE(purpose);
      CAPTURE(run.err);
      CHECK(run.exit_code == 0);
      CHECK(says(run.out, "\"fits_memory\": true"));
    }
  }
}

TEST_CASE("the layout that init chooses is the least that holds the model: with half the GPUs it does not fit") {
  const std::string decode = begun("decode", "deepseek-v3", "h200");
  REQUIRE(says(decode, "{ep: 8}"));
  const Outcome half = simulate_text(replaced(decode, "{ep: 8}", "{ep: 4}"), {"--format", "json"});
  CHECK((half.exit_code == 3 || says(half.out, "\"fits_memory\": false")));
}

TEST_CASE("a layout of training leaves a tenth of the GPU to what is not counted, and one that fills it is warned of" *
          doctest::skip(kSanitized)) {  // a minute there
  const std::string train = begun("train", "deepseek-v2", "a100");
  const Outcome run = simulate_text(train, {"--format", "json"});
  CHECK(parsed(run.out)["metrics"]["memory_gib"].GetDouble() <= 0.9 * 80);
  CHECK_FALSE(says(run.err, "are filled"));
  const std::size_t layout = train.find("parallelism: ");
  const std::string fuller =
      replaced(train, train.substr(layout, train.find('}', layout) - layout), "parallelism: {pp: 8, ep: 8, dp: 8");
  CHECK(says(simulate_text(fuller).err, "warning: 99.6 % of the GPU's 80 GiB are filled, and CUDA, NCCL and"));
}

TEST_CASE("where experts of many nodes leave no room for caches, attention is shared inside a node") {
  CHECK(says(begun("decode", "llama-4-maverick", "h100"), "parallelism: {tp: 8, ep: 16}"));
}

TEST_CASE("where no layout will do, init says what is wrong with the one that comes nearest" *
          doctest::skip(kSanitized)) {  // some fifty layouts each
  CHECK(says(run_moeline({"init", "decode", "kimi-k3", "a100"}).err, "{tp: 8, ep: 128}: 87.2 GiB per GPU (weights"));
  CHECK(
      says(run_moeline({"init", "decode", "deepseek-v3", "a100"}).err, "is an FP8 kernel, and the machine has no FP8"));
  CHECK(says(run_moeline({"init", "train", "glm-5.2", "h100"}).err, "training is not modelled for attention to"));
}

TEST_CASE("what init writes of services, training, plans and studies runs" *
          doctest::skip(kSanitized)) {  // a minute there
  const TemporaryFolder folder;
  CHECK(simulate_text(begun("serve", "qwen3-30b-a3b", "h200"), {"--set", "workload.requests=20"}).exit_code == 0);
  CHECK(simulate_text(begun("train", "qwen3-30b-a3b", "h100")).exit_code == 0);
  const std::string plan = folder.write("plan.yaml", begun("plan", "qwen3-30b-a3b", "h200"));
  CHECK(run_moeline({"plan", plan, "--no-sensitivity"}).exit_code == 0);
  folder.write("scenario.yaml", begun("decode", "qwen3-30b-a3b", "h200"));
  const std::string study =
      folder.write("study.yaml", replaced(begun("study", "qwen3-30b-a3b", "h200"), "[2048, 8192, 32768]", "[2048]"));
  CHECK(run_moeline({"sweep", study, "-o", folder / "table.sqlite"}).exit_code == 0);
}

TEST_CASE("a study that init writes has its scenario beside it, and runs; one that is there stays") {
  const TemporaryFolder folder;
  const std::string study = folder / "study.yaml", scenario = folder / "scenario.yaml";
  CHECK(run_moeline({"init", "study", "qwen3-30b-a3b", "h200", "-o", study}).exit_code == 0);
  CHECK(run_moeline({"simulate", scenario}).exit_code == 0);
  folder.write("short.yaml", replaced(content_of(study), "[2048, 8192, 32768]", "[2048]"));
  CHECK(run_moeline({"sweep", folder / "short.yaml", "-o", folder / "table.sqlite"}).exit_code == 0);
  folder.write("scenario.yaml", "mine");
  CHECK(run_moeline({"init", "study", "qwen3-30b-a3b", "h200", "-o", study, "--force"}).exit_code == 0);
  CHECK(content_of(scenario) == "mine");
}

TEST_CASE("init writes over no file, and refuses what there is not") {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.yaml";
  CHECK(run_moeline({"init", "decode", "qwen3-30b-a3b", "h200", "-o", file}).exit_code == 0);
  const std::string written = content_of(file);
  check_wrong_usage({"init", "prefill", "qwen3-30b-a3b", "h200", "-o", file}, "is there already");
  CHECK(content_of(file) == written);
  CHECK(run_moeline({"init", "prefill", "qwen3-30b-a3b", "h200", "-o", file, "--force"}).exit_code == 0);
  CHECK(content_of(file) != written);
  check_wrong_usage({"init", "decod", "qwen3-30b-a3b", "h200"}, "did you mean 'decode'?");
  check_refused({"init", "decode", "qwen3-30b-a3", "h200"}, "", "did you mean 'qwen3-30b-a3b'?");
  check_refused({"init", "decode", "qwen3-30b-a3b", "h2000"}, "", "h200");
}

}  // TEST_SUITE("cli/init")
