// Prefill and decode on a pipeline of stages.
#include "schedules/pipeline/inference_pipeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "architecture/blocks.hpp"
#include "engine/simulate.hpp"
#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/fold.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/inference_pipeline") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

const char* const kDecode = "workload={phase: decode, batch_size: 64, kv_len: 4096}";
const char* const kPrompts = "workload={phase: prefill, tokens: 8192, prompt_len: 4096}";
const char* const kLongPrompt = "workload={phase: prefill, tokens: 8192, prompt_len: 65536}";

Setup setup_of(int stages, const char* workload, Set more = {}) {
  more.insert(more.begin(), {"kernels=sglang", workload, fmt::format("parallelism={{tp: 8, ep: 8, pp: {}}}", stages)});
  return load_setup(served_scenario(), more);
}

Run run_on(int stages, const char* workload, const Set& more = {}) {
  return run_scenario(setup_of(stages, workload, more));
}

std::string refused(int stages, const char* workload, const Set& more) {
  return refusal_of([&] { (void)setup_of(stages, workload, more); });
}

double step_ms(const Run& run) { return to_us(run.metrics.span) / 1e3; }

std::vector<double> stages_ms(const Run& run) {
  std::vector<double> busy;
  for (const StageResult& stage : run.inference()->stages) busy.push_back(to_us(stage.busy) / 1e3);
  return busy;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double most(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

double messages_ms(const Run& run) {
  double us = 0;
  for (const PhaseTimes& phase : run.phases) us += phase.phase.starts_with("send_") ? to_us(phase.span()) : 0;
  return us / 1e3;
}

}  // namespace

TEST_CASE("a full pipeline goes on at the pace of its slowest stage") {
  for (const char* workload : {kDecode, kPrompts}) {
    for (const Set& stages : {Set{}, Set{"stages=[10, 17, 17, 17]"}}) {
      CAPTURE(workload);
      const Run run = run_on(4, workload, stages);
      CHECK(step_ms(run) == doctest::Approx(most(stages_ms(run))).epsilon(0.01));
      CHECK(sum(stages_ms(run)) > 3.5 * step_ms(run) * (stages.empty() ? 1 : 0.9));
    }
  }
}

TEST_CASE("a request alone, and the first prompt, go through one stage after the other") {
  const Run decode = run_on(4, "workload={phase: decode, batch_size: 1, kv_len: 4096}");
  CHECK(step_ms(decode) == doctest::Approx(sum(stages_ms(decode)) + messages_ms(decode)).epsilon(0.005));
  const Run prefill = run_on(4, kPrompts);
  CHECK(prefill.inference()->ttft_ms == doctest::Approx(sum(stages_ms(prefill)) + messages_ms(prefill)).epsilon(0.01));
}

TEST_CASE("chunks of a long prompt follow each other: its first token comes earlier, its work is the same") {
  const Run one = run_on(1, kLongPrompt);
  const Run four = run_on(4, kLongPrompt);
  const double chunks = 8, stages = 4;
  const double ideal = one.inference()->ttft_ms * (chunks + stages - 1) / (chunks * stages);  // of equal chunks
  CHECK(four.inference()->ttft_ms > one.inference()->ttft_ms / stages);
  CHECK(four.inference()->ttft_ms == doctest::Approx(ideal).epsilon(0.15));  // later chunks are longer
  CHECK(tokens_per_s(four) == doctest::Approx(tokens_per_s(one)).epsilon(0.1));
  CHECK(step_ms(four) * chunks == doctest::Approx(most(stages_ms(four))).epsilon(0.02));
}

TEST_CASE("stages share the work of a step, no more and no less") {
  const Run one = run_on(1, kPrompts);
  for (const int stages : {2, 4}) {
    CAPTURE(stages);
    const Run run = run_on(stages, kPrompts);
    CHECK(run.program.model_flops * stages == doctest::Approx(one.program.model_flops));
    CHECK(run.setup.scenario.parallelism.world() == 8 * stages);
  }
}

TEST_CASE("stages share weights and caches, and the last one has the head") {
  for (const char* model : {"deepseek-v3", "qwen3-235b-a22b", "gpt-oss-120b"}) {
    CAPTURE(model);
    const Set set = {std::string("model=") + model, "parallelism={ep: 8, pp: 4}"};
    const std::vector<Memory> whole = memory_of_stages(setup_of(1, kDecode, {set[0], "parallelism={ep: 8}"}));
    const std::vector<Memory> stages = memory_of_stages(setup_of(4, kDecode, set));
    REQUIRE(stages.size() == 4);
    double weights = 0, caches = 0;
    for (const Memory& stage : stages) {
      weights += stage.weights;
      caches += stage.kv_cache;
    }
    CHECK(weights == doctest::Approx(whole.front().weights));
    CHECK(caches == doctest::Approx(whole.front().kv_cache));
  }
  Architecture tied = load_architecture("qwen3-235b-a22b");
  tied.tie_word_embeddings = true;
  const std::vector<Block> last = {{BlockKind::head}};
  const std::vector<Module> held = modules_of(tied, last);
  CHECK(std::any_of(held.begin(), held.end(), [](const Module& module) { return module.name == "embedding"; }));
}

TEST_CASE("the round that is measured is like the one before it") {
  for (const char* workload : {kDecode, kPrompts, kLongPrompt}) {
    CAPTURE(workload);
    const InferencePipeline pipeline = inference_pipeline(setup_of(4, workload, {"stages=[20, 14, 14, 13]"}));
    const Timeline timeline = simulate(pipeline.program.graph);
    const auto end_of = [&](std::size_t round) {
      return to_us(timeline.spans[pipeline.rounds[round].back().back().ends].end);
    };
    const std::size_t steady = pipeline.steady;
    REQUIRE(steady >= 1);
    CHECK(pipeline.rounds.size() > steady + 1);
    const double now = end_of(steady) - end_of(steady - 1), next = end_of(steady + 1) - end_of(steady);
    CHECK(now == doctest::Approx(next).epsilon(1e-3));
  }
}

TEST_CASE("a run on stages prints each phase of a round once") {
  const Run run = run_on(2, kDecode, {"layers=6"});
  const auto count = [&](const std::string& name) {
    return std::count_if(run.phases.begin(), run.phases.end(), [&](const PhaseTimes& p) { return p.phase == name; });
  };
  CHECK(count("mlp") == 6 * 2);  // layers, each with two micro-batches
  CHECK(count("send_activations") == 2);
  CHECK(count("receive_activations") == 2);
  CHECK(count("send_tokens") == 2);
}

TEST_CASE("stages are as equal as they can be, the rest where the stack puts it, or as listed") {
  CHECK(setup_of(4, kDecode).scenario.stage_layers == std::vector<int>{15, 15, 15, 16});
  CHECK(setup_of(4, kDecode, {"kernels=trtllm"}).scenario.stage_layers == std::vector<int>{16, 15, 15, 15});
  CHECK(setup_of(4, kDecode, {"stages=[13, 16, 16, 16]"}).scenario.stage_layers == std::vector<int>{13, 16, 16, 16});
  CHECK(setup_of(4, kDecode, {"layers=5"}).scenario.stage_layers == std::vector<int>{1, 1, 1, 2});
}

TEST_CASE("stages are never folded") {
  const Setup staged = setup_of(4, kDecode);
  CHECK(folded(staged).fold.left_out == 0);
  CHECK(folded(setup_of(1, kDecode)).fold.left_out > 0);
}

TEST_CASE("what a pipeline cannot be asked is refused by name") {
  CHECK(says(refused(62, kDecode, {}), "pp has more stages than the 61 layers"));
  CHECK(says(refused(2, "workload={phase: prefill, tokens: 1, prompt_len: 16777216}", {}),
             "workload.prompt_len takes 16777216 steps, and 537 at most are simulated on stages"));
  CHECK(says(refused(4096, kPrompts, {"layers=5000"}), "pp is 4096, and 6 at most are simulated of 5000 layers"));
  CHECK(says(refused(2, kDecode, {"schedule=decode-two-batch"}), "pp above 1 goes with the schedule sequential"));
  CHECK(says(refused(2, "workload={phase: mixed, batch_size: 8, kv_len: 100, tokens: 64, prompt_len: 128}", {}),
             "pp above 1 is not modelled in mixed steps"));
  CHECK(says(refused(2, kDecode, {"ranks=all"}), "ranks does not go with a whole pipeline"));
  CHECK(says(refused(2, kDecode, {"routing.distribution=power_law"}), "routing does not go with a whole pipeline"));
  CHECK(says(refused(2, kDecode, {"workload.batch_size_spread=4"}), "workload does not go with a whole pipeline"));
  CHECK(says(refused(2, kDecode, {"stages=[30, 30]"}), "stages list 60 decoder layers; there are 61"));
  CHECK(says(refused(2, kDecode, {"stages=[20, 20, 21]"}), "must list the decoder layers of 2 stages"));
  CHECK(says(refused(1, kDecode, {"stages=[61]"}), "stages belongs to pipelines"));
}

}  // TEST_SUITE("schedules/inference_pipeline")
