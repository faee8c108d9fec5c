// Copies and sets of the copy engines, by the memory or link whose rate theirs is.
#pragma once

#include <cstddef>
#include <vector>

#include "measured/breakdown.hpp"
#include "trace/copy_path.hpp"

namespace moeline {

struct CopyUse {
  CopyPath path = CopyPath::unknown;
  std::size_t count = 0;
  Time sum{};         ///< of durations
  Time busy{};        ///< union
  double bytes = 0;   ///< that pass: of a copy inside the GPU's memory twice its size; where the trace says it
  Time bytes_time{};  ///< of the events whose size is known
};

/// Bytes that a copy or set moves at the rate of its memory or link; 0: the trace does not say.
[[nodiscard]] double moved_bytes(CopyPath path, const GpuEvent& event);

/// Of events of one rank, by index; paths in the order of CopyPath, without those that nothing took.
[[nodiscard]] std::vector<CopyUse> copies_of(const Trace& trace, const std::vector<std::uint32_t>& events);

}  // namespace moeline
