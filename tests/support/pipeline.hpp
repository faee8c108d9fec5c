// Whole pipelines of given slots. Costs in ms.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"
#include "schedules/pipeline/pipelines.hpp"

namespace moeline::testing {

inline constexpr SlotCosts kUnits{.f = 1, .b = 2, .w = 1, .f_and_b = 3};

struct PipelineCase {
  std::string schedule;
  PipelineShape shape;
  SlotCosts costs = kUnits;
};

inline Run run_case(const PipelineCase& c) {
  Setup setup;
  Scenario& s = setup.scenario;
  s.schedule = c.schedule;
  s.parallelism = {.pp = c.shape.ranks, .virtual_pp = c.shape.chunks};
  s.workload = TrainWorkload{.micro_batch_size = 1, .global_batch_size = c.shape.micro_batches};
  s.slot_costs = c.costs;
  if (c.shape.combined) s.overlap = kCombined;
  return run_scenario(setup);
}

/// Every schedule, on a few ranks and on DeepSeek-V3's number of them.
inline std::vector<PipelineCase> all_schedules() {
  std::vector<PipelineCase> cases;
  for (const ScheduleKind& schedule : schedule_kinds()) {
    if (!schedule.pipeline) continue;
    const int chunks = schedule.pipeline->stages_per_rank == 0 ? 3 : 1;
    cases.push_back({schedule.name, {.ranks = 4, .micro_batches = 12, .chunks = chunks}});
    cases.push_back({schedule.name, {.ranks = 16, .micro_batches = 48, .chunks = chunks}});
  }
  return cases;
}

/// "F0 B1 W F0&B1": slots by the chunk they are of; a zero-bubble B is b.
inline std::string notation(const RankSlots& slots) {
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

/// Most chunks of activations that a rank keeps: from F until all of the backward pass is done.
inline int most_activations(const RankSlots& slots) {
  int kept = 0;
  int most = 0;
  for (const Slot& slot : slots) {
    if (slot.kind == SlotKind::forward || slot.kind == SlotKind::forward_backward) most = std::max(most, ++kept);
    if (slot.kind != SlotKind::forward && slot.kind != SlotKind::backward_input) --kept;
  }
  CHECK(kept == 0);
  return most;
}

}  // namespace moeline::testing
