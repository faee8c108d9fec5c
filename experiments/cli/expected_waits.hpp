// What a folded run, which simulates one rank, charges for waiting: ranks never arrive together.
#pragma once

#include "schedules/scenario.hpp"

namespace moeline {

/// The same setup with Setup::waits: for each meeting of the rank with others, from the end of its own work before
/// it until the slowest rank is expected to have ended its own. Unchanged where all ranks are simulated, or none waits.
///
/// All ranks go through the same program, chains of kernels taken together, with the times that rank 0 takes for them;
/// what varies is drawn for each rank (kernels' jitter, expert rows, the GPUs' speed), and times follow from max and
/// plus (race.hpp). Rank 0 is the mean rank, but for rows given. The mean over 16 draws, or in inference over the
/// layers of two. In a pipeline a transfer waits as long as one of its name does on average in the second half of eight
/// MoE layers, of passes alone and of overlapped ones, in four draws. Of more than 256 ranks so many, scaled by the
/// expected maximum of normal numbers.
[[nodiscard]] Setup with_expected_waits(const Setup& setup);

}  // namespace moeline
