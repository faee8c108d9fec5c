// What a measured trace would have taken if one thing had been otherwise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measured/replay.hpp"

namespace moeline {

/// The span of a replay in which one sort of things takes no time.
struct Without {
  std::string what;  ///< compute, communication (barriers included), copies, host, gaps
  Time span{};
};

/// Spans of replays with one thing changed, of the first rank.
struct Counterfactuals {
  Time replay{};                 ///< as it was
  std::vector<Without> without;  ///< shortest first; of what the trace has
  /// Two of them at once, "communication and host", where none alone shortens the replay by a tenth and they do: each
  /// then hides behind the other.
  std::optional<Without> without_two{};
  Time no_communication{};  ///< transfers, barriers and collectives take no time
  Time no_gaps{};           ///< nothing between a kernel and what it waited for
  /// Calls of the host take no time, and what they launch starts at once; null: the trace has none.
  std::optional<Time> no_host{};
  /// Transfers may take this many times as long, barriers aside, before the span grows by 1 %; 0 beyond 16.
  double transfer_knee = 0;
  bool without_barriers = false;  ///< that knee: the trace has some
};

[[nodiscard]] Counterfactuals counterfactuals(const Measured& measured);

/// What a replay without it shortens most, or null where nothing does.
[[nodiscard]] const Without* most_gained(const Counterfactuals& counterfactuals);

}  // namespace moeline
