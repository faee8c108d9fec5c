// Stages by Megatron's text, and stages of nothing but the embedding or the loss.
#include "schedules/scenario/pipeline_layout.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"
#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/read_scenario.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("schedules/pipeline_layout") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Stages = std::vector<std::string>;

constexpr const char* kTraining =
    "{schema: 1, model: qwen3-30b-a3b, hardware: h200, schedule: 1f1b, level: phase, routing: {distribution: exact},"
    " parallelism: {pp: 4, ep: 8, dp: 8}, training: {operators: megatron},"
    " workload: {phase: train, seq_len: 2048, micro_batch_size: 1, global_batch_size: 128}}";

Run run_of(const std::vector<std::string>& set) {
  return run_scenario(read_setup(Spec::parse("train.yaml", kTraining), set));
}

std::string blocks(const Run& run, std::size_t stage) { return describe(run.step()->layout.stages[stage]); }

}  // namespace

TEST_CASE("repeats and groups are written out, as Megatron's own examples have them") {
  CHECK(expanded_layout("Et|t|tL") == Stages{"Et", "t", "tL"});
  CHECK(expanded_layout("Et*3|(tt|)*2,m|L") == Stages{"Ettt", "tt", "tt", "m", "L"});
  CHECK(expanded_layout("E|(t|)*3L") == Stages{"E", "t", "t", "t", "L"});
  CHECK(expanded_layout("((t*2|)*2t)*2") == Stages{"tt", "tt", "ttt", "tt", "t"});
  CHECK(decoders_of({"Ett", "t", "mL"}) == std::vector<int>{2, 1, 0});
  for (const char* broken : {"E(t|L", "Et)|L", "Ex|L", "t*|L", "t*0|L", "t*99999|L", "((t*4000)*4000)*4000"}) {
    CAPTURE(broken);
    CHECK_THROWS_AS((void)expanded_layout(broken), std::invalid_argument);
  }
}

TEST_CASE("Megatron's rule: one embedding first, one loss last, every layer once, no empty stage") {
  CHECK(complaint_of_layout({"Ett", "ttL"}, 4, 0).empty());
  CHECK(complaint_of_layout({"E", "tt", "tt", "L"}, 4, 0).empty());
  CHECK(complaint_of_layout({"Ett", "ttmL"}, 4, 1).empty());
  for (const Stages& wrong : {Stages{"tt", "EttL"},
                              {"Ett", "tLt"},
                              {"EEtt", "ttL"},
                              {"Ett", "tL"},
                              {"Ett", "", "ttL"},
                              {"Ett", "ttmL"},
                              {"Ett", "tt"}}) {
    CHECK(!complaint_of_layout(wrong, 4, 0).empty());
  }
  CHECK(complaint_of_layout({"Ett", "ttm", "L"}, 4, 1).find("apart from the loss") != std::string::npos);
}

TEST_CASE("a list and Megatron's text are the same stages") {
  const Run list = run_of({"stages=[12, 13, 13, 10]"}), text = run_of({"stages='Et*12|(t*13|)*2t*10L'"});
  CHECK(list.metrics.span == text.metrics.span);
  CHECK(blocks(text, 3) == "10 moe, head");
}

TEST_CASE("the embedding and the loss may have stages of their own") {
  const Run run = run_of({"stages=[0, 24, 24, 0]"});
  CHECK(blocks(run, 0) == "embedding");
  CHECK(blocks(run, 3) == "head");
  CHECK(run.step()->ranks[0].memory.peak.weights == 2 * 151936.0 * 2048);
  CHECK(run.step()->ranks[1].parts.forward > 20 * run.step()->ranks[0].parts.forward);
  for (const char* more : {"overlap=combined", "level=operator", "training.zero=1"}) {
    CAPTURE(more);
    CHECK(run_of({"stages=[0, 24, 24, 0]", more}).metrics.span > run_of({"stages=[12, 12, 12, 12]"}).metrics.span);
  }
}

TEST_CASE("a layout has the MTP layers that are trained: of DeepSeek-V3 one, or none") {
  const std::string v3 =
      "{schema: 1, model: deepseek-v3, hardware: gb200-nvl72, schedule: interleaved-1f1b, level: phase, launch: graph,"
      " routing: {distribution: exact}, parallelism: {pp: 8, virtual_pp: 4, ep: 32, dp: 32},"
      " training: {operators: megatron, recompute: full}, precision: {linear: fp8, experts: fp8},"
      " workload: {phase: train, seq_len: 4096, micro_batch_size: 1, global_batch_size: 2048}}";
  const auto setup = [&](const char* stages, const char* mtp) {
    return read_setup(Spec::parse("train.yaml", v3),
                      {std::string("stages=") + stages, std::string("training.mtp=") + mtp});
  };
  CHECK(setup("Et|(tt|)*30L", "false").scenario.stage_layers.back() == 0);
  CHECK(setup("Et|(tt|)*30mL", "true").scenario.stage_layers.back() == 0);
  CHECK_THROWS_AS((void)setup("Et|(tt|)*30L", "true"), SpecError);
  CHECK_THROWS_AS((void)setup("Et|(tt|)*30mL", "false"), SpecError);
}

TEST_CASE("94 layers run on 32 ranks of three chunks, as Megatron does with embedding and loss counted as layers") {
  const Setup setup = read_setup(
      Spec::parse("train.yaml",
                  "{schema: 1, model: qwen3-235b-a22b, hardware: h100, schedule: interleaved-1f1b, level: phase,"
                  " parallelism: {pp: 32, virtual_pp: 3, ep: 8, dp: 8}, training: {operators: megatron},"
                  " workload: {phase: train, seq_len: 4096, micro_batch_size: 1, global_batch_size: 256}}"),
      {});
  const Run run = run_scenario(setup);
  REQUIRE(run.step()->layout.stages.size() == 96);
  CHECK(blocks(run, 0) == "embedding");
  CHECK(blocks(run, 1) == "1 moe");
  CHECK(blocks(run, 95) == "head");
}

TEST_CASE("what no pipeline can have is refused with the rule") {
  const auto refuses = [](std::vector<std::string> set, const std::string& says) {
    CAPTURE(says);
    try {
      (void)run_of(set);
      FAIL_CHECK("it ran");
    } catch (const SpecError& error) {
      CHECK(std::string(error.what()).find(says) != std::string::npos);
    }
  };
  refuses({"stages=[12, 0, 24, 12]"}, "stages leave stage 1 without a layer");
  refuses({"stages='Et*48|L'"}, "stages has 2 stages; the pipeline has 4");
  refuses({"stages='Et*12|(t*12|)*2t*11L'"}, "stages has 47 decoder layers; there are 48");
  refuses({"stages='Et*12|(t*12|)*2t*12'"}, "stages needs one L");
  refuses({"stages=[0, 24, 24, 0]", "schedule=zb1p"}, "the embedding alone on the first");
}

}  // TEST_SUITE("schedules/pipeline_layout")
