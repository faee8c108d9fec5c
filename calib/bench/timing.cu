#include <algorithm>
#include <cmath>

#include "clock.cuh"
#include "timing.hpp"

namespace moeline::bench {
namespace {

constexpr std::uint64_t kGateTimeoutNs = 20'000'000;

/// Longer than the power management is taken to need for its answer; and no more launches than take the host as long.
constexpr double kWarmUs = 50'000;
constexpr int kMostWarmLaunches = 8192;

/// The events' own time is shared by the launches of a sample, so that few are enough only where they are long.
constexpr double kLongUs = 5'000;
constexpr int kFewestLaunches = 4;

__global__ void wait_at_gate(const volatile int* opened, volatile int* gave_up, int closing) {
  const std::uint64_t begin = global_ns();
  while (*opened < closing) {
    if (global_ns() - begin > kGateTimeoutNs) {
      *gave_up = closing;
      return;
    }
    __nanosleep(500);
  }
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
  wait_at_gate<<<1, 1, 0, stream>>>(opened_.device(), gave_up_.device(), ++closed_);
  CHECK_LAUNCH();
}

/// A gate gives up where launching waits for the device, but also where the host was kept from launching once.
void Gate::pass(cudaStream_t stream, const std::function<void()>& enqueue) {
  constexpr int attempts = 2;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    close(stream);
    enqueue();
    open();
    CHECK_STATUS(cudaStreamSynchronize(stream));
    if (gave_up_.at(0) != closed_) return;
  }
  throw Skip("launching waits for the device");
}

int Timer::launches_per_sample(const Launch& launch, const Pace& pace) {
  launch(stream_, turn_++);  // loads code, which may wait for the device: no gate here
  CHECK_STATUS(cudaStreamSynchronize(stream_));
  once_us_ = sample_us(launch, 3);
  const double fewest = once_us_ < kLongUs ? kFewestLaunches : 1;
  return static_cast<int>(std::clamp(std::ceil(pace.sample_us / once_us_), fewest, double(pace.most_launches)));
}

void Timer::warm_up(const Launch& launch) {
  const double launches = std::clamp(std::ceil(kWarmUs / once_us_), 1.0, double(kMostWarmLaunches));
  for (int i = 0; i < static_cast<int>(launches); ++i) launch(stream_, turn_++);
}

double Timer::sample_us(const Launch& launch, int launches, const Marks& marks) {
  gate_.pass(stream_, [&] {
    if (marks.before) marks.before(stream_);
    begin_.record(stream_);
    for (int i = 0; i < launches; ++i) launch(stream_, turn_++);
    end_.record(stream_);
    if (marks.after) marks.after(stream_);
  });
  return us_between(begin_, end_) / launches;
}

std::vector<double> time_us(cudaStream_t stream, const Launch& launch, const Pace& pace) {
  Timer timer(stream);
  const int launches = timer.launches_per_sample(launch, pace);
  timer.warm_up(launch);
  std::vector<double> samples;
  for (int i = 0; i < pace.samples; ++i) samples.push_back(timer.sample_us(launch, launches));
  return samples;
}

}  // namespace moeline::bench
