// Pipelines in a V beside the shortest step that any order of their passes has within the same memory. F, B - W and W
// take one unit each.
#include <doctest/doctest.h>

#include <array>
#include <map>

#include "engine/simulate.hpp"
#include "schedules/pipeline/lower_slots.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "tests/support/pipeline.hpp"
#include "tests/support/pipeline_optimum.hpp"

TEST_SUITE("schedules/pipeline_optimum") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Chunks that the fullest rank keeps from F to W.
int most_kept(const std::vector<RankSlots>& ranks) {
  int most = 0;
  for (const RankSlots& slots : ranks) most = std::max(most, most_activations(slots));
  return most;
}

struct Lengths {
  int own = 0, best = 0;
};

// The same shapes are asked for again and again.
int best_length(const PipelineShape& shape, int limit) {
  static std::map<std::array<int, 3>, int> known;
  const auto [found, is_new] = known.try_emplace({shape.ranks, shape.micro_batches, limit}, 0);
  if (is_new) found->second = PipelineOptimum(shape.ranks, shape.micro_batches, limit).length();
  return found->second;
}

Lengths lengths_of(const std::string& schedule, const PipelineShape& shape) {
  const std::vector<RankSlots> ranks = slots_of(schedule, shape);
  const Time unit = from_us(1);
  const TaskGraph graph = lower_slots(ranks, {.f = unit, .b = 2 * unit, .w = unit, .f_and_b = 3 * unit});
  const int own = static_cast<int>(to_us(simulate(graph).makespan) + 0.5);
  return {own, best_length(shape, most_kept(ranks))};
}

template <class Body>
void for_small_shapes(const Body& body) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    for (int micro_batches = 1; micro_batches <= 6; ++micro_batches) {
      CAPTURE(ranks);
      CAPTURE(micro_batches);
      body(PipelineShape{.ranks = ranks, .micro_batches = micro_batches});
    }
  }
}

}  // namespace

TEST_CASE(
    "an exhaustive search finds by hand what two ranks and one micro-batch take: eight passes in a row, and a W") {
  CHECK(PipelineOptimum(2, 1, 2).length() == 9);
}

TEST_CASE("no pipeline in a V is shorter than the shortest order of its passes") {
  for_small_shapes([](const PipelineShape& shape) {
    for (const char* schedule : {"zbv", "v-half", "v-min"}) {
      CAPTURE(schedule);
      const Lengths lengths = lengths_of(schedule, shape);
      CHECK(lengths.own >= lengths.best);
    }
  });
}

TEST_CASE("from 2 PP - 1 micro-batches on no order is shorter than zbv, and with fewer by up to four units") {
  for_small_shapes([](const PipelineShape& shape) {
    const Lengths lengths = lengths_of("zbv", shape);
    if (shape.micro_batches >= 2 * shape.ranks - 1) {
      CHECK(lengths.own == lengths.best);
    } else {
      CHECK(lengths.own <= lengths.best + 4);
    }
  });
}

TEST_CASE("on four ranks no order that keeps as little is shorter than v-min, from four micro-batches on") {
  for (const int micro_batches : {4, 5, 6}) {
    CAPTURE(micro_batches);
    const Lengths lengths = lengths_of("v-min", {.ranks = 4, .micro_batches = micro_batches});
    CHECK(lengths.own == lengths.best);
  }
}

TEST_CASE("v-half, whose block is not rearranged at its ends, is up to seven units longer than the shortest order") {
  int most = 0;
  for_small_shapes([&](const PipelineShape& shape) {
    const Lengths lengths = lengths_of("v-half", shape);
    most = std::max(most, lengths.own - lengths.best);
  });
  CHECK(most == 7);
}

}  // TEST_SUITE("schedules/pipeline_optimum")
