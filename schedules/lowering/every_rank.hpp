// One program for all the ranks that a scenario simulates.
#pragma once

#include <functional>
#include <string>

#include "schedules/lowering/rank_program.hpp"

namespace moeline {

/// Appends the same step on each simulated rank, joins the ranks where they meet, and freezes the graph. An order that
/// cannot run is the fault of the overlap plan in `plan_file`.
[[nodiscard]] Program on_every_rank(ProgramDraft&& program, const std::string& plan_file,
                                    const std::function<void(RankProgram&)>& append);

}  // namespace moeline
