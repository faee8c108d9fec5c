// Time of a kernel: launches that are all queued before the first one runs, between two CUDA events.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "check.hpp"

namespace moeline::bench {

using Launch = std::function<void(cudaStream_t, int turn)>;

/// Memory of the host that kernels see: flags and counters.
template <class T>
class Mapped {
 public:
  explicit Mapped(int count) {
    CHECK_STATUS(cudaHostAlloc(&host_, sizeof(T) * static_cast<std::size_t>(count), cudaHostAllocMapped));
    CHECK_STATUS(cudaHostGetDevicePointer(&device_, host_, 0));
    for (int i = 0; i < count; ++i) at(i) = T{};
  }
  ~Mapped() { (void)cudaFreeHost(host_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  [[nodiscard]] volatile T& at(int i) { return static_cast<volatile T*>(host_)[i]; }
  [[nodiscard]] volatile T* device() const { return static_cast<volatile T*>(device_); }

 private:
  void* host_ = nullptr;
  void* device_ = nullptr;
};

class Event {
 public:
  Event() { CHECK_STATUS(cudaEventCreate(&event_)); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { CHECK_STATUS(cudaEventRecord(event_, stream)); }
  void wait() { CHECK_STATUS(cudaEventSynchronize(event_)); }
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Both events are over.
[[nodiscard]] double us_between(const Event& begin, const Event& end);

/// A kernel of one thread at which a stream stands still until the host has queued what comes behind it: the host's
/// time to launch is then no part of what is measured. It gives up after 20 ms, so that a library which waits for the
/// device while it launches cannot hang, and what was measured behind a gate that gave up is thrown away.
class Gate {
 public:
  Gate() : opened_(1), gave_up_(1) {}
  ~Gate();
  /// Runs what `enqueue` puts behind the closed gate and waits for its end. Calls `enqueue` a second time where the
  /// gate had given up, and throws Skip where it does so again.
  void pass(cudaStream_t stream, const std::function<void()>& enqueue);

 private:
  void close(cudaStream_t stream);
  void open() { opened_.at(0) = closed_; }
  Mapped<int> opened_;   ///< the newest closing that the host has released
  Mapped<int> gave_up_;  ///< the newest closing that was not waited for to the end
  int closed_ = 0;
};

/// How long to look: every sample is the mean over so many launches that they take `sample_us` together, and over four
/// at least unless one takes 5 ms.
struct Pace {
  double sample_us = 200;
  int samples = 5;
  int most_launches = 256;  ///< below the 1024 that a stream queues before the host has to wait
};

/// Enqueued right before the first event of a sample and right after its second one; a second time where the sample is
/// taken again.
struct Marks {
  std::function<void(cudaStream_t)> before, after;
};

/// Times launches on one stream. It allocates when it is made and never after: beside a kernel that runs until it is
/// told to stop, an allocation would wait for that kernel.
class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {}
  /// Launches the kernel a few times, which loads its code, and says how many launches make a sample.
  [[nodiscard]] int launches_per_sample(const Launch& launch, const Pace& pace);
  /// Enqueues 50 ms of the kernel, so that what follows runs at the clock that the device can afford under this very
  /// load and not at the one that it allows itself after a rest. REQUIRES: launches_per_sample was called.
  void warm_up(const Launch& launch);
  /// Mean time of `launches` launches, gap to the next kernel included.
  [[nodiscard]] double sample_us(const Launch& launch, int launches, const Marks& marks = {});

 private:
  cudaStream_t stream_;
  Gate gate_;
  Event begin_, end_;
  double once_us_ = 0;
  int turn_ = 0;  ///< counts on from sample to sample, so that operands are as old as can be
};

[[nodiscard]] std::vector<double> time_us(cudaStream_t stream, const Launch& launch, const Pace& pace = {});

}  // namespace moeline::bench
