// Which orders a plan of overlapped phases may have: its phases on two streams, and the data between them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Something that `after` needs from `before`, in the layer so many behind.
struct SearchedData {
  std::size_t before = 0, after = 0;
  int layers = 0;
};

/// Entries are told by their number; those of the compute stream come first, as in the published plan.
struct OrderSpace {
  std::vector<PlanEntry> entries;  ///< without their offsets
  std::size_t compute = 0;         ///< so many of them are on the compute stream
  std::vector<SearchedData> data{};
  std::vector<char> leads{};  ///< of every pair of entries, whether the first leads to the second within a layer
  bool repeats = false;       ///< an entry may be of another layer than its turn: with two micro-batches

  [[nodiscard]] bool leads_to(std::size_t before, std::size_t after) const {
    return leads[before * entries.size() + after] != 0;
  }
};

/// An order of each stream. Turns follow each other without end, so that of repeating ones it says nothing where they
/// begin: the first entry is the published one.
struct PhaseOrder {
  std::vector<std::size_t> compute, communication;
  int shift = 0;  ///< layers that micro-batch 1's transfers are behind those of 0, beyond what the order says

  auto operator<=>(const PhaseOrder&) const = default;
};

/// Of a scenario's plan. Throws SpecError where its schedule has none.
[[nodiscard]] OrderSpace order_space(const Setup& setup);
[[nodiscard]] OverlapPlan searched_plan(const Setup& setup);
[[nodiscard]] PlanContents searched_contents(const Setup& setup);

[[nodiscard]] PhaseOrder order_of(const OverlapPlan& plan, const OrderSpace& space);
/// With the offsets that the data ask for. Nothing where the order cannot run, or no plan can say it.
[[nodiscard]] std::optional<OverlapPlan> plan_of(const PhaseOrder& order, const OrderSpace& space);

/// By entry, in us: of its kernels alone on their stream, and from their end until what it gives is there.
struct EntryTimes {
  std::vector<double> us, lag_us;
};
/// What a layer takes at least in this order: the maximum cycle ratio of the entries, each as fast as alone.
[[nodiscard]] double least_layer_us(const PhaseOrder& order, const OrderSpace& space, const EntryTimes& times);
/// The same of any order: by the data alone, and by the entries of each stream.
[[nodiscard]] double least_layer_us(const OrderSpace& space, const EntryTimes& times);

/// How many orders there are at most: some cannot run.
[[nodiscard]] double order_count(const OrderSpace& space);
/// All of them. REQUIRES: there are not too many.
[[nodiscard]] std::vector<PhaseOrder> all_orders(const OrderSpace& space);

}  // namespace moeline
