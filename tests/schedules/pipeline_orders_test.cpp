// Whole pipelines of given slots: which slot follows which, and what ranks keep meanwhile, as published.
#include <doctest/doctest.h>

#include <map>

#include "engine/simulate.hpp"
#include "schedules/pipeline/lower_slots.hpp"
#include "tests/support/pipeline.hpp"

TEST_SUITE("schedules/pipeline_orders") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string repeat(int times, const std::string& part) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("DualPipe on 16 ranks with 120 micro-batches is its eight steps") {
  struct Steps {
    int rank;
    int n[8];
    std::string first_pair, step6;
  };
  const Steps all[] = {
      {0, {14, 1, 7, 45, 7, 1, 7, 1}, "F0&B1 ", "B1 b0 "},
      {1, {12, 2, 6, 46, 6, 2, 6, 2}, "F0&B1 ", "B1 B0 b1 b0 "},
      {4, {6, 5, 3, 49, 3, 5, 3, 5}, "F0&B1 ", "B1 B0 B1 B0 B1 b0 b1 b0 b1 b0 "},
      {7, {0, 8, 0, 52, 0, 8, 0, 8}, "F0 B1 ", "B1 B0 B1 B0 B1 B0 B1 B0 b1 b0 b1 b0 b1 b0 b1 b0 "},
  };
  for (const auto& [rank, n, first_pair, step6] : all) {
    const std::string steps = repeat(n[0], "F0 ") + repeat(n[1], "F0 F1 ") + repeat(n[2], "b1 W F1 ") + first_pair +
                              "F1&B0 " + repeat(n[3] - 1, "F0&B1 F1&B0 ") + repeat(n[4], "B1 F1&B0 ") + step6 +
                              repeat(n[6], "W b0 ") + repeat(n[7], "W ");
    CHECK(step6.size() == static_cast<std::size_t>(6 * n[5]));
    const PipelineShape shape{.ranks = 16, .micro_batches = 120};
    CHECK(notation(dualpipe(rank, shape)) == steps);
    std::string mirrored = steps;  // the other half: phases 0 and 1 swapped
    for (char& c : mirrored) c = c == '0' ? '1' : c == '1' ? '0' : c;
    CHECK(notation(dualpipe(15 - rank, shape)) == mirrored);
  }
}

TEST_CASE("small schedules are those of the figures") {
  const PipelineShape shape{.ranks = 4, .micro_batches = 4};
  CHECK(notation(gpipe(1, shape)) == "F0 F0 F0 F0 B0 B0 B0 B0 ");
  CHECK(notation(one_f_one_b(1, shape)) == "F0 F0 F0 B0 F0 B0 B0 B0 ");
  CHECK(notation(zb1p(0, shape)) == "F0 F0 F0 F0 b0 W b0 W b0 W b0 W ");
  CHECK(notation(zb1p(3, shape)) == "F0 b0 F0 b0 F0 b0 F0 b0 W W W W ");
  const PipelineShape interleaved{.ranks = 2, .micro_batches = 2, .chunks = 2};
  CHECK(notation(interleaved_one_f_one_b(0, interleaved)) == "F0 F0 F1 F1 B1 B1 B0 B0 ");
  CHECK(notation(interleaved_one_f_one_b(1, interleaved)) == "F0 F0 F1 B1 F1 B1 B0 B0 ");
}

TEST_CASE("every micro-batch passes every stage once, forward from the first, backward from the last, W after B") {
  for (const PipelineCase& c : all_schedules()) {
    CAPTURE(c.schedule);
    const Run run = run_case(c);
    std::map<std::pair<int, int>, Span> forward, backward, weight;  // by micro-batch and stage
    int passes = 0;
    TaskId task = 0;
    for (const RankSlots& slots : slots_of(c.schedule, c.shape)) {
      for (const Slot& slot : slots) {
        const Span& span = run.timeline.spans[task++];
        const std::pair f(slot.forward.micro_batch, slot.forward.stage);
        const std::pair b(slot.backward.micro_batch, slot.backward.stage);
        const bool both = slot.kind == SlotKind::forward_backward;
        if (slot.kind == SlotKind::forward || both) CHECK(forward.emplace(f, span).second);
        if (slot.kind == SlotKind::backward_input) ++passes;
        if (slot.kind == SlotKind::weight) CHECK(weight.emplace(b, span).second);
        if (slot.kind == SlotKind::backward || slot.kind == SlotKind::backward_input || both) {
          CHECK(backward.emplace(b, span).second);
        }
      }
    }
    const bool v = schedule_named(c.schedule).pipeline->stages_per_rank == 2;
    const int stages = c.shape.ranks * (v ? 2 : c.shape.chunks);
    CHECK(forward.size() == static_cast<std::size_t>(stages * c.shape.micro_batches));
    CHECK(backward.size() == forward.size());
    CHECK(weight.size() == static_cast<std::size_t>(passes));
    for (const auto& [pass, span] : forward) {
      const std::pair next(pass.first, pass.second + 1);
      REQUIRE(backward.contains(pass));
      CHECK(span.end <= backward.at(pass).start);
      if (next.second == stages) continue;
      CHECK(span.end <= forward.at(next).start);
      CHECK(backward.at(next).end <= backward.at(pass).start);
    }
    for (const auto& [pass, span] : weight) CHECK(backward.at(pass).end <= span.start);
  }
}

TEST_CASE("activations kept are the published ones") {
  const int ranks = 8;
  const PipelineShape shape{.ranks = ranks, .micro_batches = 24};
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(most_activations(gpipe(rank, shape)) == shape.micro_batches);
    CHECK(most_activations(one_f_one_b(rank, shape)) == ranks - rank);
    CHECK(most_activations(zb1p(rank, shape)) == ranks);
    CHECK(most_activations(zb_h2(rank, shape)) == 2 * ranks - 1);
    CHECK(most_activations(zbv(rank, shape)) == 2 * ranks);  // chunks, of which there are two
    CHECK(most_activations(dualpipe(rank, shape)) == ranks + 1);
    CHECK(most_activations(dualpipev(rank, shape)) == 2 * ranks + 1);  // PP, its number of stages, is twice the ranks
  }
  for (const int chunks : {2, 4}) {  // PP (1 + (PP - 1) / (PP v)), in chunks
    const PipelineShape interleaved{.ranks = ranks, .micro_batches = 24, .chunks = chunks};
    CHECK(most_activations(interleaved_one_f_one_b(0, interleaved)) == ranks * chunks + ranks - 1);
  }
}

TEST_CASE("a pipeline is one task and one row per slot") {
  for (const PipelineCase& c : all_schedules()) {
    const Run run = run_case(c);
    std::size_t slots = 0;
    for (const RankSlots& rank : slots_of(c.schedule, c.shape)) slots += rank.size();
    CHECK(run.program.graph.size() == slots);
    CHECK(run.phases.size() == slots);
  }
}

TEST_CASE("orders that wait for each other are refused with the slots that do") {
  const Pass first{.micro_batch = 0, .stage = 0};
  const Pass second{.micro_batch = 0, .stage = 1};
  const RankSlots backward_first = {{.kind = SlotKind::backward, .backward = first},
                                    {.kind = SlotKind::forward, .forward = first}};
  const RankSlots last_rank = {{.kind = SlotKind::forward, .forward = second},
                               {.kind = SlotKind::backward, .backward = second}};
  const auto lower = [&] { (void)lower_slots({backward_first, last_rank}, {}); };
  CHECK_THROWS_WITH_AS(lower(), doctest::Contains("B of micro-batch 0 on rank 0"), CycleError);
}

TEST_CASE("a missing or repeated pass is a defect of the schedule, not of the scenario") {
  const RankSlots second_alone = {{.kind = SlotKind::forward, .forward = {.micro_batch = 0, .stage = 1}}};
  CHECK_THROWS_AS((void)lower_slots({second_alone}, {}), std::logic_error);
  const RankSlots twice = {{.kind = SlotKind::forward}, {.kind = SlotKind::forward}};
  CHECK_THROWS_AS((void)lower_slots({twice}, {}), std::logic_error);
}

}  // TEST_SUITE("schedules/pipeline_orders")
