// The device's clocks.
#pragma once

#include <cstdint>

namespace moeline::bench {

/// Nanoseconds of the timer that all SMs share; some devices advance it once in a microsecond only.
__device__ inline std::uint64_t global_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

}  // namespace moeline::bench
