// A rank's work as a Chakra execution trace, which ASTRA-sim and other simulators of networks read.
#pragma once

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

/// The bytes of a NAME.RANK.et file: protobuf messages of MLCommons' schema (et_def.proto), each behind its length,
/// first GlobalMetadata, then a Node for each task of the rank, by start. Computation is COMP_NODE with the time that
/// it takes alone; dispatch and combine are COMM_COLL_NODE of all-to-all, barriers and collectives by their names, all
/// with the bytes that this rank puts on links; host work is marked is_cpu_op. Times are whole microseconds, the
/// schema's unit. A dependency is a task that has to end before this one starts: where one has to start or end with
/// another, those that the other waits for. What ranks wait for of each other is left to the reader's collectives, and
/// so is contention.
[[nodiscard]] std::string chakra_trace(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank);

}  // namespace moeline
