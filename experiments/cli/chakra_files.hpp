// `moeline simulate --chakra NAME`: Chakra execution traces, one file for each rank, as ASTRA-sim wants them.
#pragma once

#include <string>

#include "experiments/run/run.hpp"

namespace moeline {

/// Where traces would say too little.
void refuse_chakra_of_stages(const Setup& setup);

/// Refuses the same, and files that are somebody else's.
void check_chakra_files(const Run& run, const std::string& name, const std::string& scenario, bool force);

/// NAME.RANK.et of every rank of the group that waits for each other; where one was simulated for all, all do what it
/// does. NAME.groups.json, where fewer ranks than all take part in a collective: ASTRA-sim's configuration of groups.
/// Files of an earlier run under this name that are none of this one's are removed.
void write_chakra_files(const Run& run, const std::string& name, const Progress& progress);

inline constexpr const char* kChakraHelp =
    R"(--chakra: barriers are all-reduces of 8 bytes, dispatch and combine all-to-alls, a low-latency one its part on the wire;
an all-to-all has as many bytes as make a rank send what it sends here. Everything else is computation of its time: run
ASTRA-sim without its roofline. It has no contention between kernels, which these files leave to it.)";

}  // namespace moeline
