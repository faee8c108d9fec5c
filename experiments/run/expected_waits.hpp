// What a folded run, which simulates one rank, charges for waiting: ranks never arrive together.
#pragma once

#include "schedules/lowering/program.hpp"

namespace moeline {

/// The program of a setup in which each meeting of the rank with others ends no earlier than the slowest rank is
/// expected to have ended its work before it. As it is where all ranks are simulated, or communication is free.
///
/// All ranks go through the same program, chains of kernels taken together, with the times that rank 0 takes for them;
/// what varies is drawn for each rank (kernels' jitter, expert rows, the GPUs' speed), and times follow from max and
/// plus (stragglers.hpp). Rank 0 is the rank of the program. In training the mean over 16 draws; in inference
/// over layers and draws, 4096 of a rank in a layer, of which equal layers are folded. Of more than 256 ranks so many,
/// scaled by the expected maximum of normal numbers.
[[nodiscard]] Program program_with_waits(const Setup& setup);

/// The same of a program of stages: its meetings wait as those of their name do in `alone`, one pass over all layers.
void wait_as_alone(const Setup& alone, Program& program);

/// Of a pipeline: the setup with Setup::waits. A transfer waits as long as one of its name does on average in the
/// second half of eight MoE layers, of passes alone and of overlapped ones, in four draws. The GPUs of each rank's
/// expert-parallel group are drawn once: their speeds stay, so that stages differ by their slowest GPU.
[[nodiscard]] Setup with_expected_waits(const Setup& setup);

}  // namespace moeline
