// What the units of a plan, and a layer of a program, take at least: each kernel as fast as alone.
#pragma once

#include "experiments/search/turn_graph.hpp"
#include "schedules/lowering/program.hpp"

namespace moeline {

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
