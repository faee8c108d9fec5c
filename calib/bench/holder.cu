#include <chrono>
#include <thread>

#include "clock.cuh"
#include "holder.hpp"

namespace moeline::bench {
namespace {

constexpr std::uint64_t kGiveUpNs = 2'000'000'000;
constexpr auto kArrival = std::chrono::seconds(1);

constexpr int kCopyThreads = 1024;
constexpr int kInFlight = 4;     // loads of 16 bytes that a thread has under way
constexpr int kChunkRounds = 8;  // between two looks at the flag: half a megabyte, some ten microseconds
constexpr std::int64_t kChunk = std::int64_t{kCopyThreads} * kInFlight * kChunkRounds;  // in units of 16 bytes
constexpr std::int64_t kCopyBytes = 512 << 20;  // of each side: more than any L2

__global__ void spin(HolderFlags flags) {
  flags.arrived[blockIdx.x] = 1;
  __threadfence_system();  // the host waits for it
  const std::uint64_t begin = global_ns();
  while (!*flags.released) {
    if (global_ns() - begin > kGiveUpNs) {
      *flags.gave_up = 1;
      return;
    }
    __nanosleep(1000);
  }
}

__device__ void copy_chunk(const uint4* from, uint4* to) {
  for (int round = 0; round < kChunkRounds; ++round) {
    uint4 x[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) x[i] = __ldcs(from + (round * kInFlight + i) * kCopyThreads + threadIdx.x);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) __stcs(to + (round * kInFlight + i) * kCopyThreads + threadIdx.x, x[i]);
  }
}

/// Each block goes round and round through `chunks` chunks of its own.
__global__ void __launch_bounds__(kCopyThreads) copy_until_released(HolderFlags flags, const uint4* from, uint4* to,
                                                                    int chunks, volatile unsigned long long* moved) {
  __shared__ int stop;
  const std::uint64_t begin = global_ns();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * chunks;
  if (threadIdx.x == 0) {
    flags.arrived[blockIdx.x] = 1;
    __threadfence_system();  // the host waits for it
  }
  unsigned long long bytes = 0;
  for (int chunk = 0;; chunk = chunk + 1 == chunks ? 0 : chunk + 1) {
    int released = 0;
    if (threadIdx.x == 0) released = *flags.released;  // from the host: arrives while the chunk is copied
    copy_chunk(from + (first + chunk) * kChunk, to + (first + chunk) * kChunk);
    if (threadIdx.x == 0) {
      bytes += 2 * 16 * kChunk;
      moved[blockIdx.x] = bytes;
      const bool too_long = global_ns() - begin > kGiveUpNs;
      if (too_long && !released) *flags.gave_up = 1;
      stop = released || too_long;
    }
    __syncthreads();
    if (stop) return;
    __syncthreads();  // nobody writes `stop` before all have read it
  }
}

__global__ void sum_progress(const volatile unsigned long long* moved, int blocks, Progress* progress) {
  __shared__ unsigned long long sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) atomicAdd(&sum, moved[i]);
  __syncthreads();
  if (threadIdx.x == 0) *progress = {sum, global_ns()};
}

}  // namespace

Holder::Holder(const Bench& bench, Work work, int sms)
    : device_(bench.device),
      work_(work),
      sms_(sms),
      stream_(bench.neighbour),
      arrived_(sms),
      released_(1),
      gave_up_(1),
      moved_(sms, 1),
      progress_(kMostReadings, 1) {
  if (sms >= device_.sms) throw Skip("the device has " + std::to_string(device_.sms) + " SMs");
  const int shared = device_.shared_per_block;
  if (work == Work::copy) {
    from_.emplace(kCopyBytes);
    to_.emplace(kCopyBytes);
    CHECK_STATUS(cudaMemsetAsync(from_->data(), 0x5a, kCopyBytes, stream_));
    // The copy has a flag of its own in shared memory: it is taken off what it asks for besides.
    CHECK_STATUS(cudaFuncSetAttribute(copy_until_released, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      shared - static_cast<int>(sizeof(int) * 4)));
  } else {
    CHECK_STATUS(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  }
  CHECK_STATUS(cudaStreamSynchronize(stream_));
  read_progress(stream_, 0);  // loads its code while nothing is held
  CHECK_STATUS(cudaStreamSynchronize(stream_));
}

Holder::~Holder() {
  released_.at(0) = 1;
  (void)cudaStreamSynchronize(stream_);
}

void Holder::launch() {
  const HolderFlags flags{arrived_.device(), released_.device(), gave_up_.device()};
  const auto blocks = static_cast<unsigned>(sms_);
  const auto shared = static_cast<std::size_t>(device_.shared_per_block);
  if (work_ == Work::spin) {
    spin<<<blocks, 1, shared, stream_>>>(flags);
  } else {
    const auto chunks = static_cast<int>(kCopyBytes / 16 / kChunk / sms_);
    copy_until_released<<<blocks, kCopyThreads, shared - sizeof(int) * 4, stream_>>>(
        flags, static_cast<const uint4*>(from_->data()), static_cast<uint4*>(to_->data()), chunks, moved_.at(0));
  }
  CHECK_LAUNCH();
}

void Holder::start() {
  for (int i = 0; i < sms_; ++i) arrived_.at(i) = 0;
  released_.at(0) = 0;
  gave_up_.at(0) = 0;
  CHECK_STATUS(cudaMemsetAsync(moved_.at(0), 0, sizeof(unsigned long long) * static_cast<std::size_t>(sms_), stream_));
  launch();
  const auto deadline = std::chrono::steady_clock::now() + kArrival;
  for (int i = 0; i < sms_; ++i)
    while (!arrived_.at(i)) {
      if (std::chrono::steady_clock::now() > deadline)
        throw Skip("the kernel that is to hold the SMs does not get them");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void Holder::stop() {
  released_.at(0) = 1;
  CHECK_STATUS(cudaStreamSynchronize(stream_));
  if (gave_up_.at(0)) throw Skip("did not end within 2 s beside the held SMs");
}

void Holder::read_progress(cudaStream_t stream, int place) {
  if (place >= kMostReadings) throw std::logic_error("too many readings of a copy's progress");
  sum_progress<<<1, 128, 0, stream>>>(moved_.at(0), sms_, progress_.at(0) + place);
  CHECK_LAUNCH();
}

std::vector<Progress> Holder::readings(int count) const { return fetch(progress_.at(0), count); }

}  // namespace moeline::bench
