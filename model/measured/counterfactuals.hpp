// What a measured trace would have taken if one thing had been otherwise.
#pragma once

#include <optional>

#include "measured/replay.hpp"

namespace moeline {

/// Spans of replays with one thing changed, of the first rank.
struct Counterfactuals {
  Time replay{};            ///< as it was
  Time no_communication{};  ///< transfers, barriers and collectives take no time
  Time no_gaps{};           ///< nothing between a kernel and what it waited for
  /// Calls of the host take no time, and what they launch starts at once; null: the trace has none.
  std::optional<Time> no_host{};
  /// Transfers may take this many times as long, barriers aside, before the span grows by 1 %; 0 beyond 16.
  double transfer_knee = 0;
  bool without_barriers = false;  ///< that knee: the trace has some
};

[[nodiscard]] Counterfactuals counterfactuals(const Measured& measured);

}  // namespace moeline
