// What the machine is: facts that kernels and grids ask for, and those that the table's header states.
#pragma once

#include <cstdint>
#include <string>

namespace moeline::bench {

struct Device {
  std::string name;
  int sms = 0;
  int major = 0, minor = 0;  ///< compute capability
  std::int64_t l2_bytes = 0;
  int shared_per_block = 0;  ///< bytes that one block can ask for: all of an SM but what the system keeps
  std::string driver, toolkit, cublas;
  int memory_clock_mhz = 0;
  int sm_clock_mhz = 0;   ///< measured under load (clocks.hpp)
  int timer_tick_ns = 0;  ///< steps of the timer that all SMs share
};

/// Device 0, or the one that CUDA_VISIBLE_DEVICES puts there, without what has to be measured. Throws
/// std::runtime_error where there is none.
[[nodiscard]] Device open_device();

}  // namespace moeline::bench
