// The period of a schedule that repeats layer by layer.
#include "timeline/period.hpp"

#include <doctest/doctest.h>

#include "engine/simulate.hpp"
#include "timeline/bounds.hpp"

TEST_SUITE("timeline/period") {

using namespace moeline;

namespace {

// Two micro-batches in turn: computation of one beside a transfer of the other, layer after layer.
TaskGraph two_batches(int layers, double compute_us, double transfer_us) {
  TaskGraphDraft draft;
  const std::uint16_t stream = draft.add_stream({});
  TaskId computed = kNoTask;
  TaskId arrived[2] = {kNoTask, kNoTask};
  for (std::uint32_t layer = 0; layer < static_cast<std::uint32_t>(layers); ++layer) {
    const std::uint32_t phase = draft.add_phase({.name = "layer", .layer = layer});
    for (TaskId& of_batch : arrived) {
      Task compute, transfer;
      compute.solo = from_us(compute_us);
      transfer.solo = from_us(transfer_us);
      const TaskId now = draft.add(compute, Label{.name = draft.intern("compute"), .stream = stream, .phase = phase});
      const TaskId sent =
          draft.add(transfer, Label{.name = draft.intern("transfer"), .stream = stream, .phase = phase});
      if (computed != kNoTask) draft.start_after_end(computed, now);
      if (of_batch != kNoTask) draft.start_after_end(of_batch, now);
      draft.start_after_end(now, sent);
      computed = now;
      of_batch = sent;
    }
  }
  return TaskGraph(std::move(draft));
}

}  // namespace

TEST_CASE(
    "of two micro-batches in turn a layer takes twice the computation, or a computation and a transfer if longer") {
  const Period hidden = least_period(two_batches(10, 20, 15)).value();
  CHECK(to_us(hidden.layer) == doctest::Approx(2 * 20));
  const Period exposed = least_period(two_batches(10, 20, 50)).value();
  CHECK(to_us(exposed.layer) == doctest::Approx(20 + 50));
  CHECK(exposed.layers == 10);
  CHECK(to_us(exposed.all) == doctest::Approx(9 * 70));
  CHECK(exposed.cycle.size() == 2);
}

TEST_CASE("what all layers take at least is no more than the longest chain, and comes near it where there are many") {
  for (const int layers : {3, 10, 100}) {
    CAPTURE(layers);
    const TaskGraph graph = two_batches(layers, 20, 50);
    const Time chain = lower_bounds(graph).front().time;
    CHECK(least_period(graph)->all <= chain);
    CHECK(ratio(least_period(graph)->all, chain) > 1 - 2.0 / layers);
    CHECK(simulate(graph).makespan >= chain);
  }
}

TEST_CASE("two layers, or layers that differ, have no period") {
  CHECK_FALSE(least_period(two_batches(2, 20, 15)));
  TaskGraphDraft draft;
  for (std::uint32_t layer = 0; layer < 6; ++layer) {
    const std::uint32_t phase = draft.add_phase({.name = "layer", .layer = layer});
    draft.add_stream({});
    draft.add(Task{}, Label{.name = draft.intern("kernel " + std::to_string(layer)), .phase = phase});
  }
  CHECK_FALSE(least_period(TaskGraph(std::move(draft))));
}

}  // TEST_SUITE("timeline/period")
