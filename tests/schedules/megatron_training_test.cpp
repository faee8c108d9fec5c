// Whole steps of training by Megatron's operators: every pipeline with every model, layouts, the host, and what ranks
// exchange.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/run/run_metrics.hpp"
#include "hardware/price.hpp"
#include "moe/attention_kernels.hpp"
#include "schedules/scenario/scenario.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/data.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("schedules/megatron_training") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Eight layers of Qwen3-235B in BF16 on H100, over NCCL.
Setup setup_of(const std::vector<std::string>& more = {}) {
  const std::string text =
      "schema: 1\nmodel: qwen3-235b-a22b\nhardware: h100\nschedule: 1f1b\nparallelism: {pp: 1, ep: 8, dp: 8}\n"
      "workload: {phase: train, seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\nlayers: 8\n"
      "routing: {distribution: exact}\ncomm: {mode: all_to_all}\n";
  return read_setup(Spec::parse("scenario.yaml", text), more);
}

// The same of a dense model.
Run dense_run(const std::vector<std::string>& more) {
  const std::string text =
      "schema: 1\nmodel: qwen-2.5-72b\nhardware: h100\nschedule: 1f1b\nparallelism: {pp: 4, tp: 2, dp: 4}\n"
      "workload: {phase: train, seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\nlayers: 8\n";
  return run_scenario(read_setup(Spec::parse("scenario.yaml", text), more));
}

Run run_of(const std::vector<std::string>& more = {}) { return run_scenario(setup_of(more)); }

}  // namespace

TEST_CASE("every pipeline runs with every model, eagerly and in a graph") {
  const std::vector<std::pair<std::string, std::string>> models = {{"qwen3-235b-a22b", "bf16"},
                                                                   {"mixtral-8x7b", "bf16"},
                                                                   {"gpt-oss-120b", "bf16"},
                                                                   {"deepseek-v3", "bf16"},
                                                                   {"deepseek-v2", "fp8"}};
  for (const auto& [model, format] : models) {
    for (const std::string& schedule : kSchedules) {
      for (const char* launch : {"stream", "graph"}) {
        MOELINE_CAPTURE_BINDING(model);
        CAPTURE(schedule);
        std::vector<std::string> set = {"model=" + model,
                                        "schedule=" + schedule,
                                        std::string("launch=") + launch,
                                        "precision={linear: " + format + ", experts: " + format + "}",
                                        "parallelism={tp: 2, pp: 4, ep: 8, dp: 4}",
                                        "training={operators: megatron}"};
        if (schedule == "interleaved-1f1b") set.push_back("parallelism.virtual_pp=2");
        const Run run = run_of(set);
        CHECK(run.metrics.span > Time::zero());
        CHECK(run.step()->ranks.size() == 4);
      }
    }
  }
}

TEST_CASE("a dense model runs in the pipelines that overlap no all-to-all") {
  for (const char* schedule : {"gpipe", "1f1b", "zb1p", "interleaved-1f1b"}) {
    const bool chunks = schedule == std::string("interleaved-1f1b");
    CHECK(
        dense_run({std::string("schedule=") + schedule, chunks ? "parallelism.virtual_pp=2" : "seed=1"}).metrics.span >
        Time::zero());
  }
}

TEST_CASE("tensor parallel ranks that are all simulated meet at every collective, folded ones wait as long") {
  const auto layer_us = [](const char* ranks) {
    const Run run =
        run_of({"schedule=sequential", "parallelism={tp: 2, ep: 8, dp: 4}", std::string("ranks=") + ranks, "layers=4"});
    return to_us(run.metrics.span);
  };
  CHECK(layer_us("folded") == doctest::Approx(layer_us("all")).epsilon(0.05));
}

TEST_CASE("a layer is computed again once its gradient has come") {
  const Run run = run_of({"parallelism={pp: 4, ep: 8, dp: 8}", "training={recompute: full}", "launch=graph"});
  const Run none = run_of({"parallelism={pp: 4, ep: 8, dp: 8}", "launch=graph"});
  CHECK(median_ms(run, "B") > median_ms(none, "B") + 0.9 * median_ms(none, "F"));
  CHECK(median_ms(run, "B") < median_ms(none, "B") + 1.1 * median_ms(none, "F"));
}

TEST_CASE("stages need not divide the layers: the embedding, MTP and the head count by what they cost") {
  const Run run = run_of({"model=deepseek-v3", "precision={linear: bf16, experts: bf16}", "schedule=interleaved-1f1b",
                          "parallelism={tp: 2, pp: 4, virtual_pp: 4, ep: 8, dp: 4}", "layers=all",
                          "workload.global_batch_size=32", "training={recompute: [mla_up_proj, mlp]}"});
  CHECK(run.step()->layout.stages.size() == 16);
  std::size_t fewest = 99, most = 0;
  for (const StageBlocks& stage : run.step()->layout.stages) {
    fewest = std::min(fewest, stage.size());
    most = std::max(most, stage.size());
  }
  CHECK(most > fewest);
  const Run by_hand = run_of({"parallelism={pp: 2, ep: 8, dp: 8}", "stages=[3, 5]"});
  CHECK(by_hand.step()->layout.stages[0].size() == 3);
}

TEST_CASE("an eager program waits for its host where kernels are small, and a graph has none") {
  const auto step = [](const char* launch, const char* tokens) {
    return step_ms(run_of({std::string("launch=") + launch, std::string("workload.seq_len=") + tokens}));
  };
  CHECK(step("stream", "128") > 1.5 * step("graph", "128"));
  CHECK(step("stream", "32768") < 1.02 * step("graph", "32768"));
}

TEST_CASE("a rank's work and what a micro-batch sends scale with its tokens, not with the replicas of its layout") {
  const double few = step_ms(run_of({"parallelism.dp=16", "workload.global_batch_size=128"}));
  const double many = step_ms(run_of({"parallelism.dp=64", "workload.global_batch_size=512"}));
  CHECK(many == doctest::Approx(few).epsilon(0.1));
  CHECK(many > few);  // gradients go between nodes
}

TEST_CASE("tensor parallel ranks halve the work of attention and pay for it in collectives") {
  const Run one = run_of({"parallelism={pp: 1, ep: 8, dp: 8}", "workload.global_batch_size=64"});
  const Run two = run_of({"parallelism={pp: 1, tp: 2, ep: 8, dp: 4}", "workload.global_batch_size=32"});
  CHECK(two.program.model_flops == doctest::Approx(one.program.model_flops / 2).epsilon(0.01));
  CHECK(step_ms(two) > 0.5 * step_ms(one));
  CHECK(two.step()->fullest().memory.peak.activations < 0.6 * one.step()->fullest().memory.peak.activations);
}

TEST_CASE("what all ranks of a stage keep of optimizer states adds up to the model, whatever the layout") {
  const auto bytes = [](const char* parallelism, int world) {
    const bool alone = std::string(parallelism).find("ep: 1,") != std::string::npos;
    const Run run = run_of({std::string("parallelism=") + parallelism, "workload.global_batch_size=64",
                            alone ? "comm.mode=none" : "comm.mode=all_to_all"});
    return run.step()->ranks.front().memory.peak.optimizer * world;
  };
  const double layers = 8.0 * (4096 * (64 + 2 * 4) * 128 + 64 * 128 * 4096 + 128.0 * 3 * 4096 * 1536 + 4096 * 128);
  for (const auto& [parallelism, world] : std::vector<std::pair<const char*, int>>{{"{pp: 1, ep: 8, dp: 8}", 8},
                                                                                   {"{pp: 1, ep: 8, dp: 32}", 32},
                                                                                   {"{pp: 1, tp: 4, ep: 8, dp: 2}", 8},
                                                                                   {"{pp: 1, ep: 1, dp: 4}", 4}}) {
    MOELINE_CAPTURE_BINDING(parallelism);
    CHECK(bytes(parallelism, world) == doctest::Approx(12 * layers).epsilon(0.01));
  }
}

TEST_CASE("attention's backward goes by the forward pass of the machine's own tables, slowed as DeepSeek's was") {
  const Setup h800 = read_setup(Spec::load(step_scenario()));
  CHECK(kBackwardPerFlop ==
        doctest::Approx(h800.kernels()[Constant::attention_backward] / h800.kernels()[Constant::attention_forward]));
  const Setup h100 = setup_of();
  const AttentionShape shape{
      .batch = 1, .heads = 64, .kv_heads = 4, .query_len = 4096, .kv_len = 4096, .qk_dim = 128, .v_dim = 128};
  const auto us = [&](const Operator& op) { return price(op, {.sms = 132}, h100.machine.facts, h100.kernels()); };
  const Price forward = us(prefill_core(shape)), backward = us(prefill_backward_core(shape));
  CHECK(backward.solo_us == doctest::Approx(2.5 * kBackwardPerFlop * forward.solo_us));
  CHECK(backward.provenance == Provenance::extrapolated);
  CHECK(is_covered(forward.provenance));
}

TEST_CASE("gradients are reduced beside the last backward pass, with tensor parallelism, too") {
  for (const char* layout : {"parallelism={pp: 1, ep: 8, dp: 64}", "parallelism={pp: 1, tp: 2, ep: 8, dp: 32}"}) {
    CAPTURE(layout);
    const auto step = [&](const char* overlap) {
      return step_ms(run_of({layout, "launch=graph", "workload.global_batch_size=64",
                             std::string("training={overlap_gradients: ") + overlap + "}"}));
    };
    CHECK(step("true") < 0.95 * step("false"));
  }
}

TEST_CASE("by slots a step without a pipeline ends as late as by operators") {
  const std::vector<std::string> set = {"parallelism={pp: 1, ep: 8, dp: 64}", "workload.global_batch_size=64",
                                        "launch=graph"};
  std::vector<std::string> by_slot = set;
  by_slot.emplace_back("level=phase");
  CHECK(step_ms(run_of(by_slot)) == doctest::Approx(step_ms(run_of(set))).epsilon(0.05));
}

TEST_CASE("a step of sixteen ranks simulated slot by slot is that by operators within two per cent") {
  const std::vector<std::string> set = {"layers=all", "parallelism={pp: 16, ep: 8, dp: 8}",
                                        "workload.global_batch_size=256", "launch=graph"};
  std::vector<std::string> by_slot = set;
  by_slot.emplace_back("level=phase");
  CHECK(step_ms(run_of(by_slot)) == doctest::Approx(step_ms(run_of(set))).epsilon(0.02));
}

}  // TEST_SUITE("schedules/megatron_training")
