// Branch and bound: the orders of a space that may be faster than a given time, each with what it takes at least.
#pragma once

#include <functional>
#include <vector>

#include "experiments/search/turn_graph.hpp"

namespace moeline {

struct BoundedOrder {
  double least_us = 0;
  PhaseOrder order;

  auto operator<=>(const BoundedOrder&) const = default;
};

struct OrdersBelow {
  std::vector<BoundedOrder> orders;  ///< those that take less at least, by that
  double impossible = 0;             ///< so many wait for themselves, or no plan can say them
  bool complete = true;              ///< there was time for all
};

/// A plan can say the order, and nothing in it waits for itself.
[[nodiscard]] bool can_be_planned(const PhaseOrder& order, const OrderSpace& space);

/// An order of either micro-batch, where the two share one stream; turns begin with a step of the one.
struct Lanes {
  std::vector<std::size_t> one, other;
};
/// All of them; none of other spaces.
[[nodiscard]] std::vector<Lanes> lanes_of(const OrderSpace& space);

/// How many orders there are: that respect the data of each stream. `lanes`: those of the space.
[[nodiscard]] double order_count(const OrderSpace& space, const std::vector<Lanes>& lanes);

/// Whether there is time to go on. Called from several threads.
using InTime = std::function<bool()>;

/// The same orders with any number of threads. Two micro-batches on one stream are orders of either, merged (decode has
/// two million): a beginning that already takes `us` is not gone on with. All others are looked at one by one.
[[nodiscard]] OrdersBelow orders_below(double us, const OrderSpace& space, const std::vector<Lanes>& lanes,
                                       const UnitTimes& times, std::size_t workers, const InTime& in_time);

/// All of them. REQUIRES: two streams, or one micro-batch; else there are too many.
[[nodiscard]] std::vector<PhaseOrder> all_orders(const OrderSpace& space);

}  // namespace moeline
