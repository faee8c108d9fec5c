// Kernels that hold SMs until they are told to stop: what the kernels of `contention` have to live beside.
//
// No deadlock: a holder gives up after two seconds whatever it is told, and whoever stops it learns of that.
#pragma once

#include <optional>
#include <vector>

#include "bench.hpp"
#include "buffer.hpp"
#include "timing.hpp"

namespace moeline::bench {

/// What a kernel that holds SMs shares with the host.
struct HolderFlags {
  volatile int* arrived = nullptr;  ///< one for each block
  const volatile int* released = nullptr;
  volatile int* gave_up = nullptr;
};

/// Bytes that the copy has read and written so far, and when that was.
struct Progress {
  unsigned long long bytes;
  unsigned long long ns;
};

/// N blocks that each ask for all shared memory of an SM, so that nothing else fits beside one. Allocations come before
/// start(): none may happen while it holds. It runs on the bench's neighbour stream. REQUIRES: sms > 0. Throws Skip
/// where the device has no more SMs than that.
class Holder {
 public:
  enum class Work { spin, copy };
  static constexpr int kMostReadings = 64;
  Holder(const Bench& bench, Work work, int sms);
  ~Holder();
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  /// Returns when every block is resident. Throws Skip if they do not come.
  void start();
  /// Throws Skip if it had given up by itself: then what ran beside it may have waited for its SMs.
  void stop();
  /// Enqueues reading number `place` of the copy's progress, in place of an earlier one.
  void read_progress(cudaStream_t stream, int place);
  /// REQUIRES: so many readings are over, and the holder has stopped.
  [[nodiscard]] std::vector<Progress> readings(int count) const;

 private:
  void launch();
  Device device_;
  Work work_;
  int sms_;
  cudaStream_t stream_;
  Mapped<int> arrived_, released_, gave_up_;
  std::optional<Buffer> from_, to_;  ///< of the copy
  Operand<unsigned long long> moved_;
  Operand<Progress> progress_;
};

}  // namespace moeline::bench
