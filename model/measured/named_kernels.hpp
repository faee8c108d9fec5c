// The kernels of a measured trace by name: what each is, how anybody knows, and the time it takes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "measured/release.hpp"

namespace moeline {

struct NamedKernel {
  std::string name;
  KernelMeaning meaning;
  std::size_t count = 0;
  Time sum{};        ///< of durations
  double share = 0;  ///< of the durations of all kernels
};

/// On all GPUs of the trace. What nothing is known of comes first, then the rest, each by time, the longest first.
[[nodiscard]] std::vector<NamedKernel> kernels_by_name(const Measured& measured);

}  // namespace moeline
