// Micro-batches of unequal size, and attention cut elsewhere: the same work in other parts.
#include <doctest/doctest.h>

#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("schedules/split") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// The published plan with more keys.
template <class RunScenario>
Run run_with(const std::string& keys, const std::string& schedule, RunScenario run,
             std::vector<std::string> changes = {}) {
  const TemporaryFolder folder;
  const std::string plan = folder.write("plan.yaml", keys + content_of(source("schedules/" + schedule + ".yaml")));
  changes.insert(changes.end(), {"layers=6", "routing.distribution=exact", "overlap=" + plan});
  return run(changes);
}

Run decode_with(const std::string& keys) { return run_with(keys, "decode-two-batch", run_decode); }
Run prefill_with(const std::string& keys) { return run_with(keys, "prefill-two-batch", run_prefill); }

double sent(const Run& run, std::uint32_t micro_batch) {
  std::vector<TaskId> tasks;
  const TaskGraph& graph = run.program.graph;
  for (const TaskId task : tasks_of(run, "dispatch")) {
    if (graph.phases()[graph.label(task).phase].micro_batch == micro_batch) tasks.push_back(task);
  }
  return carried(run, tasks, "NIC out");
}

double solo_of_phase(const Run& run, const std::string& name, int micro_batch) {
  return to_us(phase(run, name, micro_batch, 4).solo);
}

}  // namespace

TEST_CASE("micro-batches have all there is, the first its share rounded up, and either one where there are two") {
  for (const double share : {0.01, 0.3, 0.5, 0.62, 0.99}) {
    for (const int whole : {0, 1, 2, 3, 7, 128, 16384}) {
      CAPTURE(share);
      CAPTURE(whole);
      const int first = MicroBatch{0, 2, share}.part_of(whole), second = MicroBatch{1, 2, share}.part_of(whole);
      CHECK(first + second == whole);
      CHECK(second >= (whole > 1 ? 1 : 0));
      CHECK(first >= std::min(whole, 1));
      if (whole > 100) CHECK(first == doctest::Approx(share * whole).epsilon(0.3 / share / whole + 0.02));
    }
  }
  CHECK(MicroBatch{0, 2}.part_of(7) == 4);
  CHECK(MicroBatch{2, 3}.part_of(7) == 2);
}

TEST_CASE("a split in halves is no split, and another one does the same work in parts of that size") {
  for (const auto& run_planned : {decode_with, prefill_with}) {
    const Run whole = run_planned(""), halves = run_planned("split: 0.5\n"), uneven = run_planned("split: 0.75\n");
    CHECK(halves.metrics.span == whole.metrics.span);
    CHECK(flops_of(uneven) == doctest::Approx(flops_of(whole)).epsilon(1e-3));
    CHECK(sent(uneven, 0) == doctest::Approx(3 * sent(uneven, 1)).epsilon(1e-6));
    CHECK(sent(uneven, 0) + sent(uneven, 1) == doctest::Approx(sent(whole, 0) + sent(whole, 1)).epsilon(1e-6));
    CHECK(solo_of_phase(uneven, "mlp", 0) > solo_of_phase(whole, "mlp", 0));
    CHECK(solo_of_phase(uneven, "mlp", 1) < solo_of_phase(whole, "mlp", 1));
  }
}

TEST_CASE("prompts longer than a micro-batch see the keys of the part before them, wherever they are cut") {
  const auto longest = [](const std::string& keys) {
    return run_with(keys, "prefill-two-batch", run_prefill, {"workload.prompt_len=16384", "workload.tokens=8192"});
  };
  // One prompt's 8192 tokens: three quarters, then the last quarter, each of which sees all before it.
  CHECK(flops_of(longest("split: 0.75\n")) == doctest::Approx(flops_of(longest(""))).epsilon(0.02));
}

TEST_CASE("attention cut behind its core has the core in its first half, and the same kernels in all") {
  const Run before = decode_with(""), behind = decode_with("attention_cut: behind_core\n");
  const Run named = decode_with("attention_cut: before_core\n");
  CHECK(named.metrics.span == before.metrics.span);
  CHECK(flops_of(behind) == doctest::Approx(flops_of(before)).epsilon(1e-9));
  for (const int micro_batch : {0, 1}) {
    const double core = solo_us(before, "attn-1", "MLA decode core");
    CHECK(solo_us(behind, "attn-0", "MLA decode core") == doctest::Approx(core));
    CHECK(solo_of_phase(behind, "attn-0", micro_batch) > solo_of_phase(before, "attn-0", micro_batch) + core);
    CHECK(solo_of_phase(behind, "attn-0", micro_batch) + solo_of_phase(behind, "attn-1", micro_batch) ==
          doctest::Approx(solo_of_phase(before, "attn-0", micro_batch) + solo_of_phase(before, "attn-1", micro_batch))
              .epsilon(1e-6));
  }
}

}  // TEST_SUITE("schedules/split")
