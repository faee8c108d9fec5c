// An independent solver, MiniZinc with Gecode, asked for the best order of phases: the search must know none that is
// slower, nor one that is faster than can be.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/random.hpp"
#include "experiments/search/orders_below.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_space.hpp"

TEST_SUITE("search/oracle") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kMiniZinc = "/usr/bin/minizinc";

UnitTimes whole_times(const OrderSpace& space, Random& random) {
  UnitTimes times;
  for (const StepUnit& unit : space.units) {
    UnitTime time{.us = 1 + std::floor(60 * random.uniform())};
    if (unit.wire) time.wire_us = 1 + std::floor(60 * random.uniform());
    times.push_back(time);
  }
  return times;
}

// What is one after the other on a stream: its start and how long it takes.
struct Item {
  std::string start;
  double us = 0;
};

std::string in_some_order(const std::vector<Item>& stream, int period) {
  std::string text;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    for (std::size_t k = 0; k < stream.size(); ++k) {
      const Item &a = stream[i], &b = stream[k];
      if (i == k) continue;
      text += fmt::format("constraint {} + {:.0f} <= {} + {};\n", b.start, b.us, a.start, period);
      if (i > k) continue;
      text += fmt::format("constraint {0} + {1:.0f} <= {2} \\/ {2} + {3:.0f} <= {0};\n", a.start, a.us, b.start, b.us);
    }
  }
  return text;
}

// Wires follow each other in the order in which they are issued.
std::string in_order_of(const std::vector<Item>& issues, const std::vector<Item>& wires, int period) {
  std::string text;
  for (std::size_t i = 0; i < wires.size(); ++i) {
    for (std::size_t k = 0; k < wires.size(); ++k) {
      if (i == k) continue;
      text += fmt::format("constraint {} < {} -> ({} + {:.0f} <= {} /\\ {} + {:.0f} <= {} + {});\n", issues[i].start,
                          issues[k].start, wires[i].start, wires[i].us, wires[k].start, wires[k].start, wires[k].us,
                          wires[i].start, period);
    }
  }
  return text;
}

// Start times within a turn of this length, which the next turn repeats; `layer`: of a step, relative to its turn.
// Turns begin anywhere: of those that repeat, with the first step. Of a space without pieces, where steps are units.
std::string model_of(const OrderSpace& space, const UnitTimes& times, int period) {
  const std::size_t count = space.units.size();
  std::string text = fmt::format("array[1..{0}] of var {1}..{2}: start;\narray[1..{0}] of var -1..{3}: layer;\n", count,
                                 -2 * period, 2 * period, space.repeats ? 1 : -1);
  text += "constraint start[1] = 0;\n";
  if (space.repeats) text += "constraint layer[1] = 0;\n";
  std::vector<Item> compute, communication, issues, wires;
  for (std::size_t i = 0; i < count; ++i) {
    (i < space.compute ? compute : communication).push_back({fmt::format("start[{}]", i + 1), times[i].us});
    if (space.repeats && i < space.compute) text += fmt::format("constraint start[{}] >= 0;\n", i + 1);
    if (!space.units[i].wire) continue;
    text += fmt::format("var {}..{}: wire{};\n", -2 * period, 3 * period, i);
    issues.push_back({fmt::format("start[{}]", i + 1), times[i].us});
    wires.push_back({fmt::format("wire{}", i), times[i].wire_us});
    text += fmt::format("constraint {} + {:.0f} <= {};\n", issues.back().start, issues.back().us, wires.back().start);
  }
  text += in_some_order(compute, period) + in_some_order(communication, period) + in_order_of(issues, wires, period);
  for (const UnitData& data : space.data) {
    const bool sends = space.units[data.before].wire.has_value();
    const UnitTime& time = times[data.before];
    text += fmt::format("constraint start[{0}] + {5} * ({1} - layer[{0}] + layer[{2}]) >= {3} + {4:.0f};\n",
                        data.after + 1, data.layers, data.before + 1,
                        sends ? fmt::format("wire{}", data.before) : fmt::format("start[{}]", data.before + 1),
                        sends ? time.wire_us : time.us, period);
  }
  return text + "solve satisfy;\n";
}

// Whether any order has a turn of this length.
bool solver_finds(const OrderSpace& space, const UnitTimes& times, double period, const TemporaryFolder& folder) {
  const std::string model = folder.write("order.mzn", model_of(space, times, static_cast<int>(period)));
  const Outcome outcome = run_process({kMiniZinc, "--solver", "gecode", model});
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.err);
  return outcome.out.find("=====UNSATISFIABLE=====") == std::string::npos;
}

// Periods of the model are whole numbers, and starts with them; ratios of cycles over several turns need not be.
void check_best(const OrderSpace& space, double best, const UnitTimes& times) {
  const TemporaryFolder folder;
  const double whole = std::ceil(best - 1e-6);
  CHECK(solver_finds(space, times, whole, folder));
  CHECK_FALSE(solver_finds(space, times, whole - 1, folder));
}

double by_enumeration(const OrderSpace& space, const UnitTimes& times) {
  double least = 1e9;
  for (const PhaseOrder& order : all_orders(space)) {
    if (can_be_planned(order, space)) least = std::min(least, least_layer_us(order, space, times));
  }
  return least;
}

}  // namespace

TEST_CASE(
    "MiniZinc finds no order of the training chunk that is faster than the best of the enumerated, and none slower") {
  if (!present(kMiniZinc)) return;
  const OrderSpace space = order_space(load_setup(chunk_scenario(), {"ranks=folded", "samples=1", "launch=graph"}));
  Random random(7, 0);
  for (int draw = 0; draw < 20; ++draw) {
    CAPTURE(draw);
    const UnitTimes times = whole_times(space, random);
    check_best(space, by_enumeration(space, times), times);
  }
}

TEST_CASE("nor one of prefill, whose phases may be of the layer before, too") {
  if (!present(kMiniZinc)) return;
  const OrderSpace space = order_space(load_setup(prefill_scenario(), {"ranks=folded"}));
  Random random(8, 0);
  for (int draw = 0; draw < 5; ++draw) {
    CAPTURE(draw);
    const UnitTimes times = whole_times(space, random);
    check_best(space, by_enumeration(space, times), times);
  }
}

TEST_CASE("nor one of two micro-batches on one stream, whose wires follow each other as they are issued") {
  if (!present(kMiniZinc)) return;
  const OrderSpace space = small_space();
  Random random(9, 0);
  for (int draw = 0; draw < 10; ++draw) {
    CAPTURE(draw);
    const UnitTimes times = whole_times(space, random);
    check_best(space, orders_below(1e9, space, lanes_of(space), times, 2, [] { return true; }).orders.front().least_us,
               times);
  }
}

}  // TEST_SUITE("search/oracle")
