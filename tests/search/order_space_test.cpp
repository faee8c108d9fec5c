// The orders that a plan of overlapped phases may have, and what each takes at least.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.hpp"
#include "experiments/run/build_program.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/search/orders_below.hpp"
#include "experiments/search/turn_graph.hpp"
#include "experiments/search/variants.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("search/order_space") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Setup chunk(std::vector<std::string> set = {}) {
  set.insert(set.end(), {"ranks=folded", "samples=1"});
  return load_setup(chunk_scenario(), set);
}
Setup prefill() { return load_setup(prefill_scenario(), {"ranks=folded", "layers=32"}); }
Setup decode() { return load_setup(decode_scenario(), {"ranks=folded", "layers=32"}); }

bool runs(const Setup& setup, const OverlapPlan& plan) {
  try {
    (void)build_program(with_plan(setup, plan));
    return true;
  } catch (const SpecError&) {
    return false;
  }
}

// The order's plan without asking whether it can run: turns without offsets.
OverlapPlan as_listed(const PhaseOrder& order, const OrderSpace& space) {
  OverlapPlan plan = space.plan;
  plan.compute.clear();
  plan.communication.clear();
  for (const std::size_t step : order.compute) plan.compute.push_back(space.steps[step].entries.front());
  for (const std::size_t step : order.communication) plan.communication.push_back(space.steps[step].entries.front());
  return plan;
}

// Steps started as early as their stream and their data allow, turn after turn: what a turn takes in the long run. Of a
// space without pieces, where steps are units.
double executed_us(const PhaseOrder& order, const OrderSpace& space, const UnitTimes& times) {
  constexpr int kTurns = 400;
  const std::size_t count = space.steps.size();
  std::vector<std::vector<double>> ends(kTurns, std::vector<double>(count, 0));
  std::vector<double> free(2, 0);
  std::vector<std::vector<bool>> done(kTurns, std::vector<bool>(count, false));
  std::vector<std::size_t> next(2, 0);
  const std::vector<std::size_t>* streams[] = {&order.compute, &order.communication};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < 2; ++s) {
      const std::size_t length = streams[s]->size();
      for (; length > 0 && next[s] < kTurns * length; ++next[s]) {
        const std::size_t turn = next[s] / length, entry = (*streams[s])[next[s] % length];
        double start = free[s];
        bool ready = true;
        for (const UnitData& data : space.data) {
          if (data.after != entry || static_cast<int>(turn) < data.layers) continue;
          const std::size_t from = turn - static_cast<std::size_t>(data.layers);
          ready = ready && done[from][data.before];
          start = std::max(start, ends[from][data.before]);
        }
        if (!ready) break;
        done[turn][entry] = true;
        free[s] = ends[turn][entry] = start + times[entry].us;
        moved = true;
      }
    }
  }
  const auto last = [&](int turn) {
    return *std::max_element(ends[static_cast<std::size_t>(turn)].begin(), ends[static_cast<std::size_t>(turn)].end());
  };
  return (last(kTurns - 1) - last(kTurns / 2)) / (kTurns - 1 - kTurns / 2);
}

UnitTimes drawn_times(const OrderSpace& space, Random& random) {
  UnitTimes times;
  for (const StepUnit& unit : space.units) {
    UnitTime time{.us = 1 + 100 * random.uniform()};
    if (unit.wire) time.wire_us = 100 * random.uniform();
    times.push_back(time);
  }
  return times;
}

}  // namespace

TEST_CASE("the published chunk has 270 orders that respect the data of each stream, of which 109 can run") {
  const Setup setup = chunk({"launch=graph"});
  const OrderSpace space = order_space(setup);
  const std::vector<PhaseOrder> orders = all_orders(space);
  CHECK(orders.size() == 270);
  CHECK(order_count(space, lanes_of(space)) == 270);
  int can = 0;
  for (const PhaseOrder& order : orders) {
    const bool does = runs(setup, as_listed(order, space));
    CHECK(can_be_planned(order, space) == does);
    can += does ? 1 : 0;
  }
  CHECK(can == 109);
}

TEST_CASE("a host that reads dispatch's counts before it launches mlp(W) leaves 95 of these orders") {
  const Setup setup = chunk();
  const OrderSpace space = order_space(setup);
  const std::vector<PhaseOrder> orders = all_orders(space);
  CHECK(std::count_if(orders.begin(), orders.end(),
                      [&](const PhaseOrder& order) { return runs(setup, as_listed(order, space)); }) == 95);
}

TEST_CASE("no order of the chunk is faster than what it takes at least, nor than what all of them do") {
  const Setup setup = chunk({"launch=graph"});
  const OrderSpace space = order_space(setup);
  const Program program = build_program(setup);
  const UnitTimes times = unit_times(program, space, moe_layers(setup));
  const double bound = std::max(least_layer_us(space, times), busiest_resource_us(program, moe_layers(setup)));
  std::size_t i = 0;
  for (const PhaseOrder& order : all_orders(space)) {
    if (!can_be_planned(order, space) || ++i % 4 != 0) continue;  // of them all, to be quick
    const double us = layer_us(run_scenario(with_plan(setup, *plan_of(order, space))));
    CHECK(least_layer_us(order, space, times) <= us);
    CHECK(least_layer_us(space, times) <= least_layer_us(order, space, times) + 0.01);
    CHECK(bound <= us);
  }
}

TEST_CASE("the least time of an order is what its entries take turn after turn, whatever their times") {
  const OrderSpace space = order_space(chunk());
  const std::vector<PhaseOrder> orders = all_orders(space);
  constexpr int kDraws = kSanitized ? 1000 : 100000;
  Random random(7);
  for (int drawn = 0; drawn < kDraws;) {
    const PhaseOrder& order = orders[random.next() % orders.size()];
    if (!can_be_planned(order, space)) continue;
    ++drawn;
    const UnitTimes times = drawn_times(space, random);
    const double least = least_layer_us(order, space, times);
    CHECK(executed_us(order, space, times) == doctest::Approx(least).epsilon(0.002));
    CHECK(least_layer_us(space, times) <= least + 0.01);
  }
}

TEST_CASE("the published plans come back from their order, but for where turns begin") {
  for (const Setup& setup : {chunk(), prefill(), decode()}) {
    const OverlapPlan published = searched_plan(setup);
    const OrderSpace space = order_space(setup);
    const std::optional<OverlapPlan> again = plan_of(order_of(published, space), space);
    CAPTURE(setup.scenario.schedule);
    REQUIRE(again);
    if (setup.scenario.phase() == WorkloadPhase::decode) continue;  // which starts in the middle of a layer
    CHECK(layer_us(run_scenario(with_plan(setup, *again))) ==
          doctest::Approx(layer_us(run_scenario(setup))).epsilon(0.001));
  }
}

TEST_CASE("a plan that was written is read as it was, offsets and all") {
  const TemporaryFolder folder;
  const Setup setup = prefill();
  const OrderSpace space = order_space(setup);
  std::size_t i = 0;
  for (const PhaseOrder& order : all_orders(space)) {
    if (!can_be_planned(order, space) || ++i % 97 != 0) continue;
    const std::optional<OverlapPlan> plan = plan_of(order, space);
    const std::string file = folder.write("plan.yaml", plan_text(*plan, searched_contents(setup), "# for a test\n"));
    const OverlapPlan read = load_overlap_plan(setup.scenario.schedule, file, searched_contents(setup));
    CHECK(plan_text(read, searched_contents(setup), "") == plan_text(*plan, searched_contents(setup), ""));
    CHECK(runs(setup, read));
  }
  CHECK(i > 500);
}

}  // TEST_SUITE("search/order_space")
