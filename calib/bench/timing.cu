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

/// One sample: the mean time of `launches` launches.
double sample_us(cudaStream_t stream, const Launch& launch, Gate& gate, int launches, int& turn) {
  Event begin, end;
  gate.close(stream);
  begin.record(stream);
  for (int i = 0; i < launches; ++i) launch(stream, turn++);
  end.record(stream);
  gate.open();
  end.wait();
  return us_between(begin, end) / launches;
}

}  // namespace

double us_between(const Event& begin, const Event& end) {
  float ms = 0;
  CHECK_STATUS(cudaEventElapsedTime(&ms, begin.get(), end.get()));
  return 1e3 * ms;
}

void Gate::close(cudaStream_t stream) {
  wait_at_gate<<<1, 1, 0, stream>>>(open_.device(), ++closed_);
  CHECK_LAUNCH();
}

int launches_per_sample(cudaStream_t stream, const Launch& launch, const Pace& pace, int& turn) {
  launch(stream, turn++);  // loads code, which may wait for the device: no gate here
  CHECK_STATUS(cudaStreamSynchronize(stream));
  Gate gate;
  const double once = sample_us(stream, launch, gate, 3, turn);
  return static_cast<int>(std::clamp(std::ceil(pace.sample_us / once), 1.0, double(pace.most_launches)));
}

std::vector<double> time_us(cudaStream_t stream, const Launch& launch, const Pace& pace) {
  int turn = 0;
  const int launches = launches_per_sample(stream, launch, pace, turn);
  Gate gate;
  (void)sample_us(stream, launch, gate, launches, turn);
  std::vector<double> samples;
  for (int i = 0; i < pace.samples; ++i) samples.push_back(sample_us(stream, launch, gate, launches, turn));
  return samples;
}

}  // namespace moeline::bench
