// What a layer takes at least: the units of its steps, each as fast as alone, turn after turn.
#pragma once

#include <span>
#include <vector>

#include "experiments/search/order_space.hpp"
#include "schedules/lowering/program.hpp"

namespace moeline {

/// Of a unit alone, in us.
struct UnitTime {
  double us = 0;        ///< of its kernels on their stream
  double begun_us = 0;  ///< of these, until some of what it gives is there: of a GEMM, the first part
  double wire_us = 0;   ///< behind the kernel that issues a low-latency transfer
  bool beside = false;  ///< an issue that is released part by part, beside the compute stream
  double first_us = 0, last_us = 0,
         last_wire_us = 0;  ///< the first and last part of such an issue, the last of its wire
};
using UnitTimes = std::vector<UnitTime>;

/// `after` starts so long after `before`, so many turns later.
struct TurnEdge {
  std::size_t before = 0, after = 0;
  double us = 0;
  int turns = 0;
};
/// Starts of units; of each low-latency transfer also the end of its issue, and the start and the end of its wire.
struct TurnGraph {
  std::size_t nodes = 0;
  std::vector<TurnEdge> edges{};
};
/// What data ask for, whatever the order of steps that have these offsets.
[[nodiscard]] TurnGraph data_graph(const OrderSpace& space, const UnitTimes& times, const std::vector<int>& offsets);

/// The compute stream's order as far as it is known: some steps come first, and then, in any order, those of each
/// lane, which keep their own.
struct PartialOrder {
  std::span<const std::size_t> first;
  std::vector<std::span<const std::size_t>> lanes{};
};

/// What a layer takes at least in this order: the maximum cycle ratio of its turns. The wires of low-latency transfers
/// are one stream, in the order in which they are issued. REQUIRES: can_run.
[[nodiscard]] double least_layer_us(const PhaseOrder& order, const OrderSpace& space, const UnitTimes& times);
/// The same of any order: by the data alone, and by the units of each stream.
[[nodiscard]] double least_layer_us(const OrderSpace& space, const UnitTimes& times);

/// No unit waits for itself: every cycle takes at least one turn.
[[nodiscard]] bool can_run(const PhaseOrder& order, const OrderSpace& space);

/// Whether every order that begins so takes at least `us`. `data`: of all of them. REQUIRES: no other stream.
[[nodiscard]] bool takes_at_least(double us, const PartialOrder& order, const TurnGraph& data, const OrderSpace& space,
                                  const UnitTimes& times);

// What the units of a plan, and a layer of a program, take at least: each kernel as fast as alone.

/// MoE layers of a program's first rank, by their numbers in it.
struct LayerRange {
  int first = 0, count = 0;
  [[nodiscard]] bool has(std::uint32_t layer) const {
    return static_cast<int>(layer) >= first && static_cast<int>(layer) < first + count;
  }
};
[[nodiscard]] LayerRange moe_layers(const Setup& setup);

/// In the layer where each is shortest. A unit takes no less than the kernels that one stream has of it, their launch
/// gaps included; a low-latency transfer gives its tokens no sooner than the wire allows.
[[nodiscard]] UnitTimes unit_times(const Program& program, const OrderSpace& space, const LayerRange& layers);

/// Each by whichever of the two is less.
[[nodiscard]] UnitTimes least(const UnitTimes& a, const UnitTimes& b);

/// The most that a pool or a link has to do in a layer, over its capacity; of the layer that has least to do. Whatever
/// the order.
[[nodiscard]] double busiest_resource_us(const Program& program, const LayerRange& layers);

}  // namespace moeline
