// Memory of training over time: what overlapping passes hold together, and what runs at the peak.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "experiments/run/run.hpp"
#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/read_scenario.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("memory/step_memory") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Of four blocks, the last a head with large temporaries.
const StageMemory kStage = {{.saved = 1, .forward_workspace = 2, .backward_workspace = 3},
                            {.saved = 10, .forward_workspace = 2, .backward_workspace = 3},
                            {.saved = 10, .forward_workspace = 2, .backward_workspace = 3},
                            {.is_head = true, .saved = 4, .forward_workspace = 30, .backward_workspace = 20}};
constexpr double kSaved = 25;

double most(const SlotMemory& memory, MemoryPhase phase) { return memory.most[static_cast<std::size_t>(phase)]; }

Run qwen(const std::vector<std::string>& set) {
  return run_scenario(read_setup(
      Spec::parse("train.yaml",
                  "{schema: 1, model: qwen3-30b-a3b, hardware: h100, schedule: 1f1b, level: phase,"
                  " parallelism: {pp: 1, ep: 16, dp: 16}, workload: {phase: train, seq_len: 4096, micro_batch_size: 1,"
                  " global_batch_size: 64}, training: {operators: megatron}}"),
      set));
}

const RankMemory& fullest(const Run& run) { return run.step()->fullest().memory; }

}  // namespace

TEST_CASE("a forward pass is at its fullest in the loss, which leaves all that was saved") {
  const SlotMemory f = slot_memory(SlotKind::forward, kStage, {});
  CHECK(f.left == kSaved);
  CHECK(most(f, MemoryPhase::forward) == 1 + 10 + 10 + 2);
  CHECK(most(f, MemoryPhase::loss) == kSaved + 30);
  CHECK(f.activations + f.workspace == kSaved + 30);
}

TEST_CASE("a backward pass frees from the last block on") {
  const SlotMemory b = slot_memory(SlotKind::backward, {}, kStage);
  CHECK(b.left == -kSaved);
  CHECK(most(b, MemoryPhase::loss) == 20);          // beside all that was there
  CHECK(most(b, MemoryPhase::backward) == -4 + 3);  // the head's is gone
}

TEST_CASE("of two passes that overlap one fills what the other frees: a pair holds one and a block") {
  const SlotMemory pair = slot_memory(SlotKind::forward_backward, kStage, kStage);
  CHECK(pair.left == 0);
  // Blocks 0, 1, 2, 3 forward beside 3, 2, 1, 0 backward.
  CHECK(most(pair, MemoryPhase::pair) == 1 + 10 + 10 - 4 - 10 + 2 + 3);
  CHECK(most(pair, MemoryPhase::loss) == kSaved - 4 - 10 - 10 + 30 + 3);
  const StageMemory equal(6, {.saved = 10, .forward_workspace = 0, .backward_workspace = 0});
  CHECK(most(slot_memory(SlotKind::forward_backward, equal, equal), MemoryPhase::pair) == 10);
  CHECK(most(slot_memory(SlotKind::forward_backward, equal, StageMemory(3, equal[0])), MemoryPhase::pair) == 30 + 10);
}

TEST_CASE("where gradients of weights come apart, their operands stay until then") {
  StageMemory stage = kStage;
  for (BlockMemory& block : stage) block.pending = 2;
  CHECK(slot_memory(SlotKind::backward_input, {}, stage).left == 4 * 2 - kSaved);
  CHECK(slot_memory(SlotKind::weight, {}, stage).left == -4 * 2);
}

// "does not fit: 86.0 GiB" it was told by an account that had both micro-batches whole.
TEST_CASE("combined passes of Qwen3-30B on 16 H100 fit, as they are run, with a layer more than passes in turn") {
  const Run turns = qwen({}), pairs = qwen({"overlap=combined"});
  CHECK(fits_memory(pairs));
  const auto of = [](const Run& run, MemoryPhase phase) {
    for (const MemoryPeak& peak : fullest(run).peaks) {
      if (peak.phase == phase) return peak.bytes;
    }
    return 0.0;
  };
  const double forward = of(turns, MemoryPhase::forward), layer = fullest(turns).peak.activations / 48;
  CHECK(of(pairs, MemoryPhase::pair) > forward);
  CHECK(of(pairs, MemoryPhase::pair) < forward + 3 * layer);  // it, and temporaries of both passes
}

TEST_CASE("memory over time never exceeds the peak, which is the highest of its kinds") {
  for (const std::string& schedule : kSchedules) {
    CAPTURE(schedule);
    const Run run = run_small(schedule);
    for (const RankStep& rank : run.step()->ranks) {
      const RankMemory& memory = rank.memory;
      StepMemory now = memory.peak;
      double most = 0;
      for (const MemoryChange& change : memory.changes) {
        now.activations = change.activations;
        now.workspace = change.workspace;
        now.optimizer = change.optimizer;
        most = std::max(most, now.total());
      }
      CHECK(most == doctest::Approx(memory.peak.total()));
      REQUIRE(!memory.peaks.empty());
      CHECK(memory.peaks.front().bytes == doctest::Approx(memory.peak.total()));
    }
  }
}

TEST_CASE("recomputing layers saves nothing once the loss is the peak, and no more than down to it") {
  const Run none = qwen({}), full = qwen({"training.recompute=full"});
  CHECK(fullest(none).peaks.front().phase == MemoryPhase::loss);
  CHECK(fullest(full).peak.total() < fullest(none).peak.total());
  const double head = fullest(full).peak.workspace;  // logits and their gradients, which no recomputation frees
  CHECK(fullest(full).peaks.front().phase == MemoryPhase::loss);
  CHECK(head == doctest::Approx(fullest(none).peak.workspace));
}

}  // TEST_SUITE("memory/step_memory")
