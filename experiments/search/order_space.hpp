// Which orders a plan of overlapped phases may have: its steps on two streams, and the data between them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// What is ordered: an entry of a plan, or a bracket of them that take turns piece by piece.
struct PlanStep {
  std::vector<PlanEntry> entries;       ///< without their offsets
  std::size_t first_unit = 0, end = 0;  ///< its units
};

/// A piece of an entry: what a stream executes at once. Whole entries are one unit.
struct StepUnit {
  std::size_t step = 0, entry = 0;
  int piece = 0;
  std::optional<std::size_t> wire{};  ///< the number of the low-latency transfer that it issues
};

/// Something that a unit needs from another one, in the layer so many behind.
struct UnitData {
  std::size_t before = 0, after = 0;
  int layers = 0;
};

/// Steps and units are told by their numbers; those of the compute stream come first, as in the plan they are from.
struct OrderSpace {
  OverlapPlan plan;
  std::vector<PlanStep> steps;
  std::size_t compute = 0;  ///< so many steps are on the compute stream
  bool repeats = false;     ///< a step may be of another layer than its turn: with two micro-batches
  std::vector<StepUnit> units{};
  std::size_t wires = 0;  ///< so many units issue a low-latency transfer
  std::vector<UnitData> data{};
  std::vector<char> leads{};  ///< of every pair of steps, whether the first leads to the second within a layer

  [[nodiscard]] bool leads_to(std::size_t before, std::size_t after) const {
    return leads[before * steps.size() + after] != 0;
  }
  [[nodiscard]] const PlanEntry& entry(const StepUnit& unit) const { return steps[unit.step].entries[unit.entry]; }
  [[nodiscard]] int micro_batch(std::size_t step) const { return steps[step].entries.front().micro_batch; }
};

/// An order of each stream's steps. Turns follow each other without end, so that of repeating ones it says nothing
/// where they begin.
struct PhaseOrder {
  std::vector<std::size_t> compute;
  std::vector<std::size_t> communication{};
  int shift = 0;  ///< layers that micro-batch 1's transfers are ahead, its phases of the compute stream beside them

  auto operator<=>(const PhaseOrder&) const = default;
};

/// Whether such a schedule has a plan whose order is searched: pipelines have one of their passes alone.
[[nodiscard]] bool has_searched_plan(const ScheduleKind& kind);
[[nodiscard]] std::vector<std::string> searched_schedules();

/// Of a scenario's plan. Throws SpecError where its schedule has none, or the plan's turns are no rings.
[[nodiscard]] OrderSpace order_space(const Setup& setup);
[[nodiscard]] OverlapPlan searched_plan(const Setup& setup);
[[nodiscard]] PlanContents searched_contents(const Setup& setup);

[[nodiscard]] PhaseOrder order_of(const OverlapPlan& plan, const OrderSpace& space);
/// One micro-batch after the other, each in the order of its data.
[[nodiscard]] PhaseOrder plain_order(const OrderSpace& space);
/// The same, each receiving its combine of the layer before first: behind that runs all that can.
[[nodiscard]] PhaseOrder late_order(const OrderSpace& space);
/// Layers that each step is ahead of its turn: one that stands in front of what it needs is of the layer before.
[[nodiscard]] std::vector<int> offsets_of(const PhaseOrder& order, const OrderSpace& space);
/// Whether a plan can say them: it has the layer before and the next.
[[nodiscard]] bool can_be_said(const std::vector<int>& offsets);
/// With its offsets. Nothing where no plan can say them.
[[nodiscard]] std::optional<OverlapPlan> plan_of(const PhaseOrder& order, const OrderSpace& space);

}  // namespace moeline
