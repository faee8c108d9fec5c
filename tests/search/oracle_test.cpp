// An independent solver, MiniZinc with Gecode, asked for the best order of phases: the search must know none that is
// slower, nor one that is faster than can be.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/random.hpp"
#include "experiments/search/order_space.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kMiniZinc = "/usr/bin/minizinc";

EntryTimes whole_times(std::size_t entries, Random& random) {
  EntryTimes times;
  for (std::size_t i = 0; i < entries; ++i) {
    times.us.push_back(1 + std::floor(60 * random.uniform()));
    times.lag_us.push_back(random.uniform() < 0.3 ? std::floor(30 * random.uniform()) : 0);
  }
  return times;
}

// Start times within a turn of this length, which the next turn repeats; `layer`: of an entry, relative to its turn.
// Turns begin anywhere: with the first entry.
std::string model_of(const OrderSpace& space, const EntryTimes& times, int period) {
  const std::size_t count = space.entries.size();
  std::string text = fmt::format("array[1..{}] of var {}..{}: start;\narray[1..{}] of var -1..{}: layer;\n", count,
                                 -2 * period, 2 * period, count, space.repeats ? 1 : -1);
  text += "constraint start[1] = 0;\n";
  const auto stream = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      for (std::size_t k = first; k < last; ++k) {
        if (i == k) continue;
        text += fmt::format("constraint start[{}] + {:.0f} <= start[{}] + {};\n", k + 1, times.us[k], i + 1, period);
        if (i > k) continue;
        text += fmt::format("constraint start[{0}] + {1:.0f} <= start[{2}] \\/ start[{2}] + {3:.0f} <= start[{0}];\n",
                            i + 1, times.us[i], k + 1, times.us[k]);
      }
    }
  };
  stream(0, space.compute);
  stream(space.compute, count);
  for (const SearchedData& data : space.data) {
    text += fmt::format("constraint start[{0}] + {4} * ({1} - layer[{0}] + layer[{2}]) >= start[{2}] + {3:.0f};\n",
                        data.after + 1, data.layers, data.before + 1, times.us[data.before] + times.lag_us[data.before],
                        period);
  }
  return text + "solve satisfy;\n";
}

// Whether any order has a turn of this length.
bool solver_finds(const OrderSpace& space, const EntryTimes& times, double period, const TemporaryFolder& folder) {
  const std::string model = folder.write("order.mzn", model_of(space, times, static_cast<int>(period)));
  const Outcome outcome = run_process({kMiniZinc, "--solver", "gecode", model});
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.err);
  return outcome.out.find("=====UNSATISFIABLE=====") == std::string::npos;
}

// Periods of the model are whole numbers, and starts with them; ratios of cycles over several turns need not be.
void check_best(const OrderSpace& space, double best, const EntryTimes& times) {
  const TemporaryFolder folder;
  const double whole = std::ceil(best - 1e-6);
  CHECK(solver_finds(space, times, whole, folder));
  CHECK_FALSE(solver_finds(space, times, whole - 1, folder));
}

double by_enumeration(const OrderSpace& space, const EntryTimes& times) {
  double least = 1e9;
  for (const PhaseOrder& order : all_orders(space)) {
    if (plan_of(order, space)) least = std::min(least, least_layer_us(order, space, times));
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
    const EntryTimes times = whole_times(space.entries.size(), random);
    check_best(space, by_enumeration(space, times), times);
  }
}

TEST_CASE("nor one of prefill, whose phases may be of the layer before, too") {
  if (!present(kMiniZinc)) return;
  const OrderSpace space = order_space(load_setup(prefill_scenario(), {"ranks=folded"}));
  Random random(8, 0);
  for (int draw = 0; draw < 5; ++draw) {
    CAPTURE(draw);
    const EntryTimes times = whole_times(space.entries.size(), random);
    check_best(space, by_enumeration(space, times), times);
  }
}
