// Times of single kernels in a simulated timeline: how much they disturb each other.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/run.hpp"

namespace moeline {

/// Kernels that have all of what is given.
struct KernelSelection {
  std::string name{};         ///< "cast dY to fp8"; "": any
  std::string task_class{};   ///< "memory", "gemm"; "": any
  std::string phase{};        ///< "": any
  std::vector<int> layers{};  ///< empty: all
  std::string beside{};       ///< class of a kernel on another stream, during one of which they start and end; "": any
};

[[nodiscard]] std::vector<TaskId> select(const Run& run, const KernelSelection& kernels);

/// Median of time taken / time alone. REQUIRES: some tasks.
[[nodiscard]] double median_slowdown(const Run& run, const std::vector<TaskId>& tasks);

/// From the first's start to the last's end.
[[nodiscard]] double span_us(const Run& run, const std::vector<TaskId>& tasks);

/// The same if streams ran side by side without disturbing each other: the longest sum of times alone.
[[nodiscard]] double longest_stream_us(const Run& run, const std::vector<TaskId>& tasks);

}  // namespace moeline
