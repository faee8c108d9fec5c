// A program in fewer pieces: kernels that follow each other and meet nothing on the way count as one.
#pragma once

#include <vector>

#include "schedules/lowering/program.hpp"

namespace moeline {

struct Chain {
  std::vector<TaskId> tasks;          ///< in order
  std::vector<std::uint32_t> before;  ///< chains whose ends it waits for
};

struct Chains {
  std::vector<Chain> list;  ///< every chain after those it waits for
  std::vector<std::uint32_t> of_task;
};

/// Tasks of one phase of which each waits for the one before alone, and nothing else does. Communication is never
/// joined to anything. Those that stand for the slowest rank (Meeting::wait) are in none.
/// REQUIRES: beside theirs, edges from ends to starts alone.
[[nodiscard]] Chains chains_of(const Program& program);

}  // namespace moeline
