// What ranks of a training step hold in memory, and what its choices trade for it.
#include <doctest/doctest.h>

#include "architecture/checkpoint_format.hpp"
#include "experiments/run/run_metrics.hpp"
#include "moe/training_memory.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("schedules/training_choices") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("DualPipe holds two stages' weights and PP+1 activations, 1F1B's first rank PP, GPipe's all of them") {
  const Run dualpipe = run_small("dualpipe");
  const Run v = run_small("dualpipev", {"layers=16"});
  const Run one = run_small("1f1b");
  const Run gpipe = run_small("gpipe");
  for (const RankStep& rank : dualpipe.step()->ranks) {
    CHECK(rank.memory.most_passes == 4 + 1);
    CHECK(rank.memory.peak.weights == doctest::Approx(2 * one.step()->ranks.front().memory.peak.weights));
  }
  for (const RankStep& rank : v.step()->ranks) CHECK(rank.memory.most_passes == 2 * 4 + 1);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(one.step()->ranks[rank].memory.most_passes == 4 - static_cast<int>(rank));
    CHECK(gpipe.step()->ranks[rank].memory.most_passes == 12);
  }
}

TEST_CASE("memory over time starts and ends without activations and never goes below") {
  for (const std::string& schedule : kSchedules) {
    CAPTURE(schedule);
    const Run run = run_small(schedule);
    for (const RankStep& rank : run.step()->ranks) {
      CHECK(rank.memory.changes.front().passes == 1);
      CHECK(rank.memory.changes.back().passes == 0);
      for (const MemoryChange& change : rank.memory.changes) CHECK(change.passes >= 0);
    }
  }
}

TEST_CASE("FLOPs do not depend on what is recomputed") {
  const auto flops = [](const char* recompute) {
    return run_small("1f1b", {std::string("training={recompute: ") + recompute + "}"}).program.model_flops;
  };
  CHECK(flops("none") == doctest::Approx(flops("selective")));
  CHECK(flops("full") == doctest::Approx(flops("selective")));
}

TEST_CASE("what is kept and what is computed again trade memory for time") {
  const Run selective = run_small("1f1b");
  const Run none = run_small("1f1b", {"training={recompute: none}"});
  const Run full = run_small("1f1b", {"training={recompute: full}"});
  const Run wide = run_small("1f1b", {"training={activations: bf16}"});
  CHECK(none.metrics.span < selective.metrics.span);
  CHECK(selective.metrics.span < full.metrics.span);
  CHECK(none.step()->fullest().memory.peak.activations > 1.5 * selective.step()->fullest().memory.peak.activations);
  CHECK(full.step()->fullest().memory.peak.activations < 0.2 * selective.step()->fullest().memory.peak.activations);
  CHECK(wide.metrics.span < selective.metrics.span);  // no casts
  CHECK(wide.step()->fullest().memory.peak.activations > selective.step()->fullest().memory.peak.activations);
  CHECK(median_ms(full, "F") <= median_ms(selective, "F"));  // nothing is saved in fewer bits
}

TEST_CASE("full recomputation repeats the forward pass but for combine, beside DualPipe's pairs too") {
  const Run none = run_small("1f1b", {"training={recompute: none, activations: bf16}"});
  const Run full = run_small("1f1b", {"training={recompute: full}"});
  const double f = median_ms(full, "F");
  const double again = median_ms(full, "B") - median_ms(none, "B");
  CHECK(again > 0.6 * f);
  CHECK(again < f);
  CHECK(step_ms(run_small("dualpipe", {"training={recompute: full}"})) > step_ms(run_small("dualpipe")));
}

TEST_CASE("storage of gradients and moments enters memory as its bytes say") {
  const Run base = run_small("1f1b");
  const auto memory = [](const char* choice) {
    return run_small("1f1b", {std::string("training={") + choice + "}"}).step()->ranks.front().memory.peak;
  };
  const StepMemory& as_is = base.step()->ranks.front().memory.peak;
  CHECK(memory("gradients: bf16").gradients == doctest::Approx(as_is.gradients / 2));
  CHECK(memory("moments: fp32").optimizer == doctest::Approx(as_is.optimizer * 12 / 8));
  CHECK(memory("zero: 0").optimizer > 1.9 * as_is.optimizer);
}

TEST_CASE("a BF16 checkpoint that is trained in FP8 has FP8 weights in memory, too") {
  const Run run =
      run_small("1f1b", {"model=deepseek-v2", "parallelism.ep=32", "precision={linear: fp8, experts: fp8}"});
  Architecture fp8 = load_architecture("deepseek-v2");
  store_linear_as(Precision::fp8, fp8);
  store_experts_as(Precision::fp8, fp8);
  const StageParameters stage = stage_parameters(fp8, main_layers_alone(fp8, 2), {.ep = 32});
  CHECK(run.step()->ranks.front().memory.peak.weights == doctest::Approx(stage.replicated_bytes + stage.experts_bytes));
  CHECK(stage.experts_bytes / stage.experts == doctest::Approx(1).epsilon(0.001));
}

TEST_CASE("no choice of training is without effect on the step or on its memory") {
  const auto result = [](const std::string& choice) {
    const Run run = run_small("dualpipe", {"training={" + choice + "}"});
    return std::pair(step_ms(run), memory_bytes(run));
  };
  const auto as_is = result("");
  for (const std::string choice : {"recompute: none", "recompute: full", "activations: bf16", "gradients: bf16",
                                   "moments: fp32", "zero: 0", "overlap_gradients: false", "overlap_sends: false"}) {
    CAPTURE(choice);
    CHECK(result(choice) != as_is);
  }
}

}  // TEST_SUITE("schedules/training_choices")
