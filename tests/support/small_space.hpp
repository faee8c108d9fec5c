// Orders of two micro-batches on one stream, few enough to list them all.
#pragma once

#include "experiments/search/order_space.hpp"

namespace moeline::testing {

/// Either computes, sends and receives, with something beside it that needs no transfer.
inline OrderSpace small_space() {
  using Part = PlanEntry::Part;
  OrderSpace space{.plan = {}, .steps = {}, .repeats = true};
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    const std::size_t first = space.steps.size();
    for (const Part part : {Part::whole, Part::issue, Part::receive}) {
      const std::size_t number = space.steps.size();
      space.units.push_back({number, 0, 0});
      if (part == Part::issue) space.units.back().wire = space.wires++;
      space.steps.push_back({.entries = {{.phase = "mlp", .micro_batch = micro_batch, .part = part}},
                             .first_unit = number,
                             .end = number + 1});
    }
    space.steps.push_back(
        {.entries = {{.phase = "shared", .micro_batch = micro_batch}}, .first_unit = first + 3, .end = first + 4});
    space.units.push_back({first + 3, 0, 0});
    for (std::size_t i = 0; i < 2; ++i) space.data.push_back({first + i, first + i + 1, 0});
    for (const std::size_t last : {first + 2, first + 3}) space.data.push_back({last, first, 1});
    space.data.push_back({first, first + 3, 0});
  }
  space.compute = space.steps.size();
  space.leads.assign(space.compute * space.compute, 0);
  for (const std::size_t first : {std::size_t{0}, std::size_t{4}}) {
    for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}, {0, 3}}) {
      space.leads[(first + static_cast<std::size_t>(a)) * space.compute + first + static_cast<std::size_t>(b)] = 1;
    }
  }
  return space;
}

}  // namespace moeline::testing
