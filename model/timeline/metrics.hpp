// Numbers about a timeline.
#pragma once

#include <string>
#include <vector>

#include "engine/timeline.hpp"

namespace moeline {

struct ClassTimes {
  std::string name;
  Time busy{};  ///< union of its kernels
  Time solo{};  ///< sum of their solo times
};

/// Averages over the ranks of the graph.
struct Metrics {
  Time span{};          ///< start of the first kernel to end of the last
  Time compute_busy{};  ///< union of compute kernels
  Time comm_busy{};     ///< union of communication kernels, barriers included
  Time exposed_comm{};  ///< communication runs and no compute does
  Time idle{};          ///< neither runs
  std::vector<ClassTimes> classes;

  [[nodiscard]] double overlap_fraction() const;  ///< of communication, that hidden behind compute
  [[nodiscard]] double bubble_fraction() const;   ///< of the span, that in which no kernel runs
};

[[nodiscard]] Metrics measure(const TaskGraph& graph, const Timeline& timeline);

}  // namespace moeline
