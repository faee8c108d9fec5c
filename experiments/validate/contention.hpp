// What calib/bench measured of kernels that disturb each other, beside what the engine makes of it.
#pragma once

#include <string>
#include <vector>

#include "calib/fit/bench_table.hpp"
#include "hardware/profile.hpp"

namespace moeline {

/// One kernel beside a neighbour; times in us.
struct ContentionScore {
  std::string kernel;      ///< its key
  std::string beside;      ///< "spin", "copy", "kernel"
  std::string parameters;  ///< as measured
  double alone_us = 0;
  double measured_us = 0;
  double predicted_us = 0;  ///< kUnknown where the kernel would wait for the neighbour to end
};

/// The engine runs both kernels by their measured times alone: nothing is fitted to what is scored. A spin holds its
/// SMs; a copy does too and takes the HBM that it was measured to take alone; the same kernel twice is two tasks.
[[nodiscard]] std::vector<ContentionScore> score_contention(const BenchTable& table, const MachineFacts& machine);

}  // namespace moeline
