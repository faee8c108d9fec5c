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
  Time span{};          ///< start of the first kernel to end of the last, on any rank
  Time compute_busy{};  ///< union of compute kernels
  Time comm_busy{};     ///< union of communication kernels, barriers included
  Time exposed_comm{};  ///< communication runs and no compute does
  Time idle{};          ///< neither runs
  double sm_use = 0;    ///< share of all SMs, over the span: held by residents, or worked on by elastic kernels
  std::vector<ClassTimes> classes;

  [[nodiscard]] double overlap_fraction() const;  ///< of communication, that hidden behind compute
  [[nodiscard]] double bubble_fraction() const;   ///< of the span, that in which no kernel runs
};

[[nodiscard]] Metrics measure(const TaskGraph& graph, const Timeline& timeline);

/// Of the time between two instants alone: what reaches beyond them counts by the part inside. `span` is end - start.
[[nodiscard]] Metrics measure(const TaskGraph& graph, const Timeline& timeline, Time start, Time end);

/// Times of `part` of it; shares stay.
[[nodiscard]] Metrics scaled(Metrics metrics, double part);

/// As if the timeline held what `part` was measured over so many times more. REQUIRES: of the same graph.
void extend(Metrics& metrics, const Metrics& part, double times);

// Where compute waits for communication: exposed communication, told apart from launch gaps and by what waits.

struct ComputeWait {
  std::uint32_t phase = 0;  ///< of the graph: whose kernels waited
  Time wait{};
};

/// Of the stream "compute" of one rank, by phase in order of execution; phases that never wait are left out. A kernel
/// waits from the end of the one before it on the stream until it is released, as far as communication of the rank runs
/// meanwhile and no other compute: launch gaps and waits for SMs or for a side stream do not count.
/// A kernel that receives waits for messages whether or not this rank's own still travel.
[[nodiscard]] std::vector<ComputeWait> compute_waits(const TaskGraph& graph, const Timeline& timeline,
                                                     std::uint32_t rank);

}  // namespace moeline
