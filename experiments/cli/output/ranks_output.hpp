// How `moeline analyze` says what it found in traces of several ranks.
#pragma once

#include <string>

#include "experiments/report/fields.hpp"
#include "measured/several_ranks.hpp"

namespace moeline {

[[nodiscard]] std::string to_table(const SeveralRanks& ranks);
[[nodiscard]] std::string to_json(const SeveralRanks& ranks);
[[nodiscard]] Fields<SeveralRanks> several_ranks_fields();

inline constexpr const char* kRanksHelp =
    R"(Several traces, one of each rank: what the ranks do together are kernels of communication that all of them have equally
often and leave at the same time, as barriers and collectives. skew: last arrival less the first one. A rank waits from its
own arrival to the last one's; keeps waiting: that of the others, on average over them, where it came last. Clocks are set by
the ends of what they do together: clock is what a rank's differs from the first one's, ends apart what that leaves
unexplained. Who came last is meant among the traces that are given.)";

}  // namespace moeline
