// What plans take at least: never more than what they take, and nothing that may be faster is left out.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "experiments/run/build_program.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/search/orders_below.hpp"
#include "experiments/search/turn_graph.hpp"
#include "experiments/search/variants.hpp"
#include "schedules/scenario/fold.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/small_space.hpp"

TEST_SUITE("search/bounds") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Steps move to other places, one after the other.
PhaseOrder wandered(PhaseOrder order, const OrderSpace& space, Random& random) {
  for (int moves = 0; moves < 12; ++moves) {
    PhaseOrder next = order;
    auto& stream = random.next() % space.steps.size() < space.compute ? next.compute : next.communication;
    const auto from = stream.begin() + static_cast<std::ptrdiff_t>(random.next() % stream.size());
    const std::size_t step = *from;
    stream.erase(from);
    stream.insert(stream.begin() + static_cast<std::ptrdiff_t>(random.next() % (stream.size() + 1)), step);
    if (can_be_planned(next, space)) order = next;
  }
  return order;
}

std::vector<BoundedOrder> listed(const OrderSpace& space, const UnitTimes& times) {
  std::vector<BoundedOrder> all;
  std::vector<std::size_t> steps(space.steps.size());
  std::iota(steps.begin(), steps.end(), std::size_t{0});
  do {
    PhaseOrder order{.compute = steps};
    if (can_be_planned(order, space)) all.push_back({least_layer_us(order, space, times), order});
  } while (std::next_permutation(steps.begin() + 1, steps.end()));
  std::sort(all.begin(), all.end());
  return all;
}

constexpr int kLayers = 40;

Variants variants(VariantRequest request, int layers) {
  request.assignments.push_back("layers=" + std::to_string(layers));
  request.pieces = request.splits = request.attention = true;
  request.piece_counts = {1, 2};
  return variants_of(request);
}

double span_us(const Setup& setup, const OverlapPlan& plan) {
  return to_us(run_scenario(unfolded(with_plan(setup, plan))).metrics.span);
}

}  // namespace

TEST_CASE("by branch and bound are found the orders that a list of all has below a time, and no others") {
  const OrderSpace space = small_space();
  Random random(3);
  for (int draw = 0; draw < 20; ++draw) {
    UnitTimes times;
    for (const StepUnit& unit : space.units) {
      UnitTime time{.us = 1 + 100 * random.uniform()};
      if (unit.wire) time.wire_us = 200 * random.uniform();
      times.push_back(time);
    }
    std::vector<BoundedOrder> all = listed(space, times);
    CHECK(static_cast<double>(all.size()) == order_count(space, lanes_of(space)));
    const double us = all[all.size() * static_cast<std::size_t>(draw) / 20].least_us + 1e-6;
    std::erase_if(all, [&](const BoundedOrder& order) { return order.least_us >= us; });
    const std::vector<BoundedOrder> found =
        orders_below(us, space, lanes_of(space), times, 2, [] { return true; }).orders;
    REQUIRE(found.size() == all.size());
    CHECK(found == all);
  }
}

TEST_CASE("no order of prefill or decode is faster than what it takes at least, in pieces and released, too") {
  constexpr double kSettled = 1.0002;
  VariantRequest decode{.scenario = decode_scenario(), .assignments = {"workload.batch_size=256"}};
  decode.schedules = decode.sms = true;
  decode.num_sms = {0, 8};
  for (const VariantRequest& request : {VariantRequest{.scenario = prefill_scenario(), .assignments = {}}, decode}) {
    const Variants few = variants(request, kLayers), many = variants(request, 2 * kLayers);
    CHECK(few.refused.empty());
    Random random(11);
    for (std::size_t i = 0; i < few.variants.size(); i += 2) {  // to be quick
      const Setup& setup = many.variants[i].setup;
      const OrderSpace space = order_space(setup);
      CAPTURE(setup.scenario.schedule);
      CAPTURE(setup.scenario.comm.num_sms);
      CAPTURE(plan_text(space.plan, searched_contents(setup), ""));
      const Setup plain = space.repeats ? with_plan(setup, *plan_of(plain_order(space), space)) : setup;
      const Program program = build_program(plain);
      const UnitTimes times = unit_times(program, space, moe_layers(plain));
      const double floor = std::max(least_layer_us(space, times), busiest_resource_us(program, moe_layers(plain)));
      for (int draw = 0; draw < 3; ++draw) {
        const PhaseOrder order = wandered(order_of(space.plan, space), space, random);
        const OverlapPlan plan = *plan_of(order, space);
        // What twice the layers take more is what such layers take for ever.
        const double us = (span_us(setup, plan) - span_us(few.variants[i].setup, plan)) / kLayers;
        const double least = least_layer_us(order, space, times);
        CHECK(least <= kSettled * us);
        CHECK(floor <= kSettled * us);
        CHECK(least_layer_us(space, times) <= least + 0.01);
      }
    }
  }
}

}  // TEST_SUITE("search/bounds")
