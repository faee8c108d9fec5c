// Whole pipelines of given slots: lengths and bubbles as published. Costs in ms.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/pipeline.hpp"

TEST_SUITE("schedules/pipeline") {

using namespace moeline;
using namespace moeline::testing;

namespace {

double length_ms(const PipelineCase& c) { return to_us(run_case(c).metrics.span) / 1e3; }

// Of each rank: what the step takes longer than its own slots.
std::vector<double> bubbles_ms(const PipelineCase& c) {
  const Run run = run_case(c);
  std::vector<Time> bubbles(static_cast<std::size_t>(c.shape.ranks), run.timeline.makespan);
  for (const PhaseTimes& slot : run.phases) bubbles[slot.rank] -= slot.solo;
  std::vector<double> ms;
  for (const Time bubble : bubbles) ms.push_back(to_us(bubble) / 1e3);
  return ms;
}

// Of each rank: what it idles between the start of its first and the end of its last slot.
std::vector<double> idle_inside_ms(const PipelineCase& c) {
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

void check_bubble_of_every_rank(const PipelineCase& c, double expected_ms) {
  CAPTURE(c.schedule);
  CAPTURE(c.shape.ranks);
  CAPTURE(c.shape.micro_batches);
  CAPTURE(c.costs.w);
  for (const double bubble : bubbles_ms(c)) CHECK(bubble == expected_ms);
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

TEST_CASE("a weight part as long as the whole backward leaves a B that takes no time") {
  const PipelineCase c{"zb1p", {.ranks = 4, .micro_batches = 8}, {.f = 2, .b = 2, .w = 2}};
  CHECK(length_ms(c) == 8 * 4 + 3 * 2);
}

}  // TEST_SUITE("schedules/pipeline")
