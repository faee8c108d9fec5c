// Whole pipelines of given slots: bubbles, lengths, orders and activations as published. Costs in ms.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/simulate.hpp"
#include "experiments/cli/output/simulate_output.hpp"
#include "schedules/pipeline/lower_slots.hpp"
#include "schedules/pipeline/pipelines.hpp"

using namespace moeline;

namespace {

constexpr SlotCosts kUnits{.f = 1, .b = 2, .w = 1, .f_and_b = 3};

struct Case {
  std::string schedule;
  PipelineShape shape;
  SlotCosts costs = kUnits;
};

Run run_case(const Case& c) {
  Setup setup;
  Scenario& s = setup.scenario;
  s.schedule = c.schedule;
  s.parallelism = {.pp = c.shape.ranks, .virtual_pp = c.shape.chunks};
  s.workload = TrainWorkload{.micro_batch_size = 1, .global_batch_size = c.shape.micro_batches};
  s.slot_costs = c.costs;
  if (c.shape.combined) s.overlap = kCombined;
  return run_scenario(setup);
}

double length_ms(const Case& c) { return to_us(run_case(c).metrics.span) / 1e3; }

// Of each rank: what the step takes longer than its own slots.
std::vector<double> bubbles_ms(const Case& c) {
  const Run run = run_case(c);
  std::vector<Time> bubbles(static_cast<std::size_t>(c.shape.ranks), run.timeline.makespan);
  for (const PhaseTimes& slot : run.phases) bubbles[slot.rank] -= slot.solo;
  std::vector<double> ms;
  for (const Time bubble : bubbles) ms.push_back(to_us(bubble) / 1e3);
  return ms;
}

// Of each rank: what it idles between the start of its first and the end of its last slot.
std::vector<double> idle_inside_ms(const Case& c) {
  const Run run = run_case(c);
  std::vector<Time> first(static_cast<std::size_t>(c.shape.ranks), run.timeline.makespan), last(first.size());
  std::vector<Time> busy(first.size());
  for (const PhaseTimes& slot : run.phases) {
    first[slot.rank] = std::min(first[slot.rank], slot.start);
    last[slot.rank] = std::max(last[slot.rank], slot.end);
    busy[slot.rank] += slot.solo;
  }
  std::vector<double> ms;
  for (std::size_t i = 0; i < first.size(); ++i) ms.push_back(to_us(last[i] - first[i] - busy[i]) / 1e3);
  return ms;
}

void check_bubble_of_every_rank(const Case& c, double expected_ms) {
  CAPTURE(c.schedule);
  CAPTURE(c.shape.ranks);
  CAPTURE(c.shape.micro_batches);
  CAPTURE(c.costs.w);
  for (const double bubble : bubbles_ms(c)) CHECK(bubble == expected_ms);
}

std::vector<RankSlots> slots_of(const std::string& schedule, const PipelineShape& shape) {
  std::vector<RankSlots> ranks;
  for (int rank = 0; rank < shape.ranks; ++rank) ranks.push_back(moeline::slots_of(schedule, rank, shape));
  return ranks;
}

// Every schedule, on a few ranks and on DeepSeek-V3's number of them.
std::vector<Case> all_schedules() {
  std::vector<Case> cases;
  for (const ScheduleKind& schedule : schedule_kinds()) {
    if (!schedule.pipeline) continue;
    const int chunks = schedule.pipeline->stages_per_rank == 0 ? 3 : 1;
    cases.push_back({schedule.name, {.ranks = 4, .micro_batches = 12, .chunks = chunks}});
    cases.push_back({schedule.name, {.ranks = 16, .micro_batches = 48, .chunks = chunks}});
  }
  return cases;
}

// "F0 B1 W F0&B1": slots by the chunk they are of; a zero-bubble B is b.
std::string notation(const RankSlots& slots) {
  std::string text;
  for (const Slot& slot : slots) {
    const std::string forward = fmt::format("F{}", slot.forward.chunk);
    const int backward = slot.backward.chunk;
    switch (slot.kind) {
      case SlotKind::forward:
        text += forward;
        break;
      case SlotKind::backward:
        text += fmt::format("B{}", backward);
        break;
      case SlotKind::backward_input:
        text += fmt::format("b{}", backward);
        break;
      case SlotKind::weight:
        text += "W";
        break;
      case SlotKind::forward_backward:
        text += fmt::format("{}&B{}", forward, backward);
        break;
    }
    text += " ";
  }
  return text;
}

std::string repeat(int times, const std::string& part) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

// Most chunks of activations that a rank keeps: from F until all of the backward pass is done.
int most_activations(const RankSlots& slots) {
  int kept = 0;
  int most = 0;
  for (const Slot& slot : slots) {
    if (slot.kind == SlotKind::forward || slot.kind == SlotKind::forward_backward) most = std::max(most, ++kept);
    if (slot.kind != SlotKind::forward && slot.kind != SlotKind::backward_input) --kept;
  }
  CHECK(kept == 0);
  return most;
}

}  // namespace

TEST_CASE("GPipe and 1F1B idle (PP-1)(F+B), whatever the costs and the number of micro-batches") {
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    for (const int ranks : {1, 2, 4, 8, 16}) {
      for (const int micro_batches : {1, ranks, ranks + 1, 3 * ranks}) {
        for (const SlotCosts& costs : {kUnits, SlotCosts{.f = 12, .b = 7}}) {
          check_bubble_of_every_rank({schedule, {.ranks = ranks, .micro_batches = micro_batches}, costs},
                                     (ranks - 1) * (costs.f + costs.b));
        }
      }
    }
  }
}

TEST_CASE("interleaved 1F1B idles (PP-1)(F+B) of one of its v chunks: 1/v of 1F1B's bubble") {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    for (const int chunks : {2, 3, 4}) {
      for (const int micro_batches : {ranks, 2 * ranks, 5 * ranks}) {
        for (const SlotCosts& costs : {kUnits, SlotCosts{.f = 12, .b = 7}}) {
          check_bubble_of_every_rank(
              {"interleaved-1f1b", {.ranks = ranks, .micro_batches = micro_batches, .chunks = chunks}, costs},
              (ranks - 1) * (costs.f + costs.b));
        }
      }
    }
  }
}

TEST_CASE("ZB1P idles (PP-1)(F+B-2W) where W is no longer than F and than the rest of B") {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    for (const int micro_batches : {ranks, ranks + 1, 3 * ranks}) {
      for (const SlotCosts& costs : {kUnits, SlotCosts{.f = 10, .b = 22, .w = 9}, SlotCosts{.f = 12, .b = 20, .w = 10},
                                     SlotCosts{.f = 10, .b = 30, .w = 4}}) {
        check_bubble_of_every_rank({"zb1p", {.ranks = ranks, .micro_batches = micro_batches}, costs},
                                   (ranks - 1) * (costs.f + costs.b - 2 * costs.w));
      }
    }
  }
}

TEST_CASE("ZB1P with a longer W idles (PP-1)(F + (B-W) - min(F, B-W, W))") {
  for (const SlotCosts& costs : {SlotCosts{.f = 8, .b = 20, .w = 10}, SlotCosts{.f = 10, .b = 20, .w = 12}}) {
    check_bubble_of_every_rank({"zb1p", {.ranks = 8, .micro_batches = 24}, costs},
                               7 * std::max(costs.f, costs.b - costs.w));  // W is not the least
  }
}

TEST_CASE("the first rank of ZB-H2 idles (PP-1)(F+B-3W) between its first and its last slot, the last one never") {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    for (const int micro_batches : {2 * ranks, 3 * ranks + 1}) {
      for (const SlotCosts& costs : {kUnits, SlotCosts{.f = 10, .b = 22, .w = 9}, SlotCosts{.f = 12, .b = 20, .w = 10},
                                     SlotCosts{.f = 10, .b = 30, .w = 4}}) {
        CAPTURE(ranks);
        CAPTURE(costs.w);
        const std::vector<double> idle =
            idle_inside_ms({"zb-h2", {.ranks = ranks, .micro_batches = micro_batches}, costs});
        CHECK(idle.front() == (ranks - 1) * (costs.f + costs.b - 3 * costs.w));
        CHECK(idle.back() == 0);
      }
    }
  }
}

TEST_CASE("no rank of ZBV idles between its first and its last slot where F, B-W and W are equally long") {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    for (const int micro_batches : {2 * ranks - 1, 2 * ranks, 5 * ranks}) {
      CAPTURE(ranks);
      CAPTURE(micro_batches);
      for (const double idle : idle_inside_ms({"zbv", {.ranks = ranks, .micro_batches = micro_batches}})) {
        CHECK(idle == 0);
      }
    }
  }
}

TEST_CASE(
    "V-Min is slower and keeps less than V-Half, V-Half than ZBV: a third, a half and all of 1F1B's activations") {
  for (const int ranks : {4, 8, 16}) {
    CAPTURE(ranks);
    const PipelineShape shape{.ranks = ranks, .micro_batches = 3 * ranks};
    const auto longest = [&](const char* schedule, const SlotCosts& costs) {
      return length_ms({schedule, shape, costs});
    };
    const auto most = [&](const char* schedule) {
      int kept = 0;
      for (const RankSlots& slots : slots_of(schedule, shape)) kept = std::max(kept, most_activations(slots));
      return kept;
    };
    for (const SlotCosts& costs : {SlotCosts{.f = 10, .b = 22, .w = 9}, SlotCosts{.f = 12, .b = 20, .w = 10}}) {
      CHECK(longest("zbv", costs) < longest("v-half", costs));
      CHECK(longest("v-half", costs) < longest("v-min", costs));
    }
    // In chunks, of which there are two to a rank. W comes up to three chunks after its B.
    CHECK(most("zbv") == 2 * ranks);
    CHECK(most("v-half") >= ranks);
    CHECK(most("v-half") <= ranks + 3);
    CHECK(most("v-min") >= (2 * ranks + 2) / 3);
    CHECK(most("v-min") <= 2 * ranks / 3 + 3);
  }
}

TEST_CASE("V-Half and V-Min repeat without gaps where F, B-W and W are equally long") {
  for (const std::string schedule : {"v-half", "v-min"}) {
    for (const int ranks : {2, 3, 4, 5, 6, 8, 12}) {
      CAPTURE(schedule);
      CAPTURE(ranks);
      const auto after = [&](int micro_batches) {
        return length_ms({schedule, {.ranks = ranks, .micro_batches = micro_batches}});
      };
      CHECK(after(3 * ranks + 10) - after(3 * ranks) == 6 * 10);
    }
  }
}

TEST_CASE("combined 1F1B on one rank overlaps every F but the first with the B before") {
  const SlotCosts costs{.f = 10, .b = 20, .f_and_b = 24};
  CHECK(length_ms({"1f1b", {.ranks = 1, .micro_batches = 6, .combined = true}, costs}) == 10 + 5 * 24 + 20);
  const PipelineShape two{.ranks = 2, .micro_batches = 4, .combined = true};
  CHECK(notation(one_f_one_b(0, two)) == "F0 F0 F0 F0&B0 B0 B0 B0 ");
  CHECK(notation(one_f_one_b(1, two)) == "F0 F0&B0 F0&B0 F0&B0 B0 ");
}

TEST_CASE("combined 1F1B runs at the pace of its pairs, on any number of ranks and chunks") {
  const SlotCosts costs{.f = 10, .b = 20, .f_and_b = 24};
  for (const int ranks : {2, 4, 8}) {
    for (const std::string schedule : {"1f1b", "interleaved-1f1b"}) {
      const int chunks = schedule == "1f1b" ? 1 : 2;
      CAPTURE(ranks);
      CAPTURE(schedule);
      const auto after = [&](int micro_batches) {
        return length_ms(
            {schedule, {.ranks = ranks, .micro_batches = micro_batches, .chunks = chunks, .combined = true}, costs});
      };
      CHECK(after(6 * ranks) - after(4 * ranks) == 2 * ranks * chunks * costs.f_and_b);
    }
  }
}

TEST_CASE("DualPipe on 8, 16 and 16 ranks takes 66, 206 and 734 units for 20, 64 and 240 micro-batches") {
  CHECK(length_ms({"dualpipe", {.ranks = 8, .micro_batches = 20}}) == 66);
  CHECK(length_ms({"dualpipe", {.ranks = 16, .micro_batches = 64}}) == 206);
  CHECK(length_ms({"dualpipe", {.ranks = 16, .micro_batches = 240}}) == 734);
}

TEST_CASE("DualPipe and DualPipeV idle (PP/2-1)(F&B+B-3W) where B-W is as long as F, and F&B as F+B") {
  for (const int half : {1, 2, 3, 4, 8}) {
    for (const int per_direction : {2 * half, 2 * half + 1, 5 * half}) {
      for (const SlotCosts& costs : {kUnits, SlotCosts{.f = 10, .b = 16, .w = 6, .f_and_b = 26}}) {
        const double expected = (half - 1) * (costs.f_and_b + costs.b - 3 * costs.w);
        check_bubble_of_every_rank({"dualpipe", {.ranks = 2 * half, .micro_batches = 2 * per_direction}, costs},
                                   expected);
        check_bubble_of_every_rank({"dualpipev", {.ranks = half, .micro_batches = per_direction}, costs}, expected);
      }
    }
  }
}

TEST_CASE("with a shorter F&B the formula is that of the middle four ranks, farther out each overlaps one pair less") {
  const SlotCosts costs{.f = 10, .b = 20, .w = 10, .f_and_b = 25};
  CHECK(bubbles_ms({"dualpipe", {.ranks = 8, .micro_batches = 20}, costs}) ==
        std::vector<double>{35, 40, 45, 45, 45, 45, 40, 35});  // (8/2 - 1)(25 + 20 - 30) = 45; F + B - F&B = 5
  CHECK(bubbles_ms({"dualpipev", {.ranks = 4, .micro_batches = 10}, costs}) == std::vector<double>{35, 40, 45, 45});
}

TEST_CASE("with other B-W the middle pair that is not overlapped makes DualPipe's bubble up to F shorter") {
  for (const int half : {2, 4, 8}) {
    for (const double input : {8, 10, 11, 15, 24}) {  // B-W
      const SlotCosts costs{.f = 10, .b = input + 6, .w = 6, .f_and_b = 10 + input + 6};
      const double published = (half - 1) * (costs.f_and_b + costs.b - 3 * costs.w);
      const double expected = std::max((half - 1) * (costs.f_and_b + costs.f - 2 * costs.w), published - costs.f);
      check_bubble_of_every_rank({"dualpipe", {.ranks = 2 * half, .micro_batches = 5 * half * 2}, costs}, expected);
      check_bubble_of_every_rank({"dualpipev", {.ranks = half, .micro_batches = 5 * half}, costs}, expected);
    }
  }
}

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
  for (const Case& c : all_schedules()) {
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

TEST_CASE("a pipeline is deterministic, one task and one row per slot") {
  for (const Case& c : all_schedules()) {
    const Run run = run_case(c);
    std::size_t slots = 0;
    for (const RankSlots& rank : slots_of(c.schedule, c.shape)) slots += rank.size();
    CHECK(run.program.graph.size() == slots);
    CHECK(run.phases.size() == slots);
    CHECK(to_csv(run) == to_csv(run_case(c)));
  }
}

TEST_CASE("a weight part as long as the whole backward leaves a B that takes no time") {
  const Case c{"zb1p", {.ranks = 4, .micro_batches = 8}, {.f = 2, .b = 2, .w = 2}};
  CHECK(length_ms(c) == 8 * 4 + 3 * 2);
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
