#include <algorithm>
#include <cmath>

#include "clock.cuh"
#include "timing.hpp"

namespace moeline::bench {
namespace {

constexpr std::uint64_t kGateTimeoutNs = 20'000'000;

__global__ void wait_at_gate(const volatile int* opened, int closing) {
  const std::uint64_t begin = global_ns();
  while (*opened < closing && global_ns() - begin < kGateTimeoutNs) __nanosleep(500);
}

}  // namespace

double us_between(const Event& begin, const Event& end) {
  float ms = 0;
  CHECK_STATUS(cudaEventElapsedTime(&ms, begin.get(), end.get()));
  return 1e3 * ms;
}

/// A gate that still stands closed, after an exception, must not read memory that is gone.
Gate::~Gate() {
  open();
  (void)cudaDeviceSynchronize();
}

void Gate::close(cudaStream_t stream) {
  wait_at_gate<<<1, 1, 0, stream>>>(open_.device(), ++closed_);
  CHECK_LAUNCH();
}

int Timer::launches_per_sample(const Launch& launch, const Pace& pace) {
  launch(stream_, turn_++);  // loads code, which may wait for the device: no gate here
  CHECK_STATUS(cudaStreamSynchronize(stream_));
  const double once = sample_us(launch, 3);
  const double launches = std::clamp(std::ceil(pace.sample_us / once), 1.0, double(pace.most_launches));
  (void)sample_us(launch, static_cast<int>(launches));
  return static_cast<int>(launches);
}

double Timer::sample_us(const Launch& launch, int launches, const std::function<void(cudaStream_t)>& mark) {
  gate_.close(stream_);
  if (mark) mark(stream_);
  begin_.record(stream_);
  for (int i = 0; i < launches; ++i) launch(stream_, turn_++);
  end_.record(stream_);
  if (mark) mark(stream_);
  gate_.open();
  CHECK_STATUS(cudaStreamSynchronize(stream_));
  return us_between(begin_, end_) / launches;
}

std::vector<double> time_us(cudaStream_t stream, const Launch& launch, const Pace& pace) {
  Timer timer(stream);
  const int launches = timer.launches_per_sample(launch, pace);
  std::vector<double> samples;
  for (int i = 0; i < pace.samples; ++i) samples.push_back(timer.sample_us(launch, launches));
  return samples;
}

}  // namespace moeline::bench
