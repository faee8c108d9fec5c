// A program in fewer pieces: kernels that follow each other and meet nothing on the way count as one.
#pragma once

#include <boost/container/small_vector.hpp>
#include <vector>

#include "schedules/lowering/program.hpp"

namespace moeline {

struct Chain {
  boost::container::small_vector<TaskId, 8> tasks;          ///< in order
  boost::container::small_vector<std::uint32_t, 2> before;  ///< chains whose ends it waits for
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
