// A combine that starts while the GEMM before it still runs (SGLang's single-batch overlap): the GEMM signals which
// rows it has finished, and the kernel that issues the combine sends them, on a few SMs of its own.
//
//   down GEMM     [ 1st half ][ 2nd half ]                      on the SMs that the combine leaves it
//   issue                     [ 1 ][ 2 ]  [ 3 ][ 4 ]
//   wire                           [ 1 ][ 2 ]   [ 3 ][  4  ]
//
// The parts of a kernel take what the whole takes, together: its start-up comes first, the latency of the wire last.
#pragma once

#include <vector>

#include "base/time.hpp"

namespace moeline {

/// In how many parts a GEMM of `experts` with so many columns releases what it has finished: after each wave of tiles
/// on so many SMs, were every expert one tile high, but at most once for each expert and 16 times in all. Whatever the
/// rows: ranks that get more of them have the same tasks.
[[nodiscard]] int releases_of(double experts, double columns, int sms);

/// Parts of what is sent, a multiple of the releases: the wire carries one while the next is issued.
[[nodiscard]] int sends_of(int releases);

/// Parts of a kernel that takes `whole_us`, where its start-up comes first, or its latency last; `part_us`: of one part
/// alone, with that.
enum class Once { first, last };
[[nodiscard]] std::vector<Time> parts_of(double whole_us, double part_us, int parts, Once once);

}  // namespace moeline
