// A rank's work as a Chakra execution trace, which ASTRA-sim and other simulators of networks read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/timeline.hpp"

namespace moeline {

/// How those begin that we wrote: length and GlobalMetadata, of the schema's version and {"producer": "moeline"}.
inline constexpr std::string_view kChakraStart =
    "\x1d\x0a\x05"
    "0.0.4"
    "\x12\x14\x0a\x08"
    "producer"
    "\xea\x01\x07"
    "moeline";

/// A task that ranks do together, by the enumeration of the schema; of these ASTRA-sim knows all.
struct ChakraCollective {
  enum class Kind : std::uint8_t { all_reduce = 0, all_gather = 2, all_to_all = 6, reduce_scatter = 7 };
  Kind kind = Kind::all_to_all;
  std::int64_t bytes = 0;  ///< that a rank holds before it; above 0
  int group = 0;           ///< of the ranks that take part, by a number above 0; 0: all ranks do
};
/// Nothing: the task is computation, or the host's work.
using ChakraCollectives = std::function<std::optional<ChakraCollective>(TaskId)>;

/// The bytes of a NAME.RANK.et file: protobuf messages of MLCommons' schema (et_def.proto), each behind its length,
/// first GlobalMetadata, then a Node for each task of the rank, by start. Collectives are COMM_COLL_NODE; everything
/// else is COMP_NODE with the time that it takes alone, host work marked is_cpu_op. Times are whole microseconds, the
/// schema's unit. A dependency is a task that has to end before this one starts: where one has to start or end with
/// another, those that the other waits for. What ranks wait for of each other is left to the reader's collectives, and
/// so is contention.
[[nodiscard]] std::string chakra_trace(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank,
                                       const ChakraCollectives& collectives);

}  // namespace moeline
