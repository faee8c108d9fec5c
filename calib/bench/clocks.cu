#include "clocks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "blas_handle.hpp"
#include "buffer.hpp"
#include "clock.cuh"
#include "random.hpp"

namespace moeline::bench {
namespace {

constexpr int kMostSms = 1024;  // numbers of SMs may have holes
constexpr int kSize = 8192;     // of the product: a millisecond or two
constexpr auto kLoad = std::chrono::milliseconds(250);

struct Reading {
  long long cycles;
  std::uint64_t ns;
};

__device__ unsigned sm_number() {
  unsigned number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  return number;
}

/// One reading per SM that a block comes to; of several blocks on one SM any will do, they are microseconds apart.
__global__ void read_clocks(Reading* of_sm) {
  if (threadIdx.x == 0 && sm_number() < kMostSms) of_sm[sm_number()] = {clock64(), global_ns()};
}

class Product {
 public:
  explicit Product(const Bench& bench)
      : bench_(bench), handle_(bench), x_(kElements, 1), w_(kElements, 1), d_(kElements, 1) {
    fill(x_, 1, -1, 1, bench.stream);
    fill(w_, 2, -1, 1, bench.stream);
  }

  /// Products one after another for a quarter of a second, in batches between which the device rests for some
  /// microseconds only.
  void run() {
    constexpr int batch = 16;
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < kLoad) {
      for (int i = 0; i < batch; ++i) launch();
      CHECK_STATUS(cudaStreamSynchronize(bench_.stream));
    }
  }

 private:
  static constexpr std::int64_t kElements = std::int64_t{kSize} * kSize;

  void launch() {
    const float alpha = 1, beta = 0;
    CHECK_STATUS(cublasGemmEx(handle_.on(bench_.stream), CUBLAS_OP_T, CUBLAS_OP_N, kSize, kSize, kSize, &alpha,
                              w_.at(0), CUDA_R_16BF, kSize, x_.at(0), CUDA_R_16BF, kSize, &beta, d_.at(0), CUDA_R_16BF,
                              kSize, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

  const Bench& bench_;
  BlasHandle handle_;
  Operand<__nv_bfloat16> x_, w_, d_;
};

class Readings {
 public:
  explicit Readings(const Bench& bench) : bench_(bench), of_sm_(kMostSms, 1) {}

  [[nodiscard]] std::vector<Reading> take() const {
    CHECK_STATUS(cudaMemsetAsync(of_sm_.at(0), 0, sizeof(Reading) * kMostSms, bench_.stream));
    read_clocks<<<static_cast<unsigned>(4 * bench_.device.sms), 32, 0, bench_.stream>>>(of_sm_.at(0));
    CHECK_LAUNCH();
    CHECK_STATUS(cudaStreamSynchronize(bench_.stream));
    return fetch(of_sm_.at(0), kMostSms);
  }

 private:
  const Bench& bench_;
  Operand<Reading> of_sm_;
};

/// The median of the SMs that were read both times, or 0.
double mhz_between(const std::vector<Reading>& begin, const std::vector<Reading>& end) {
  std::vector<double> mhz;
  for (std::size_t i = 0; i < begin.size(); ++i)
    if (begin[i].ns > 0 && end[i].ns > begin[i].ns)
      mhz.push_back(1e3 * static_cast<double>(end[i].cycles - begin[i].cycles) /
                    static_cast<double>(end[i].ns - begin[i].ns));
  if (mhz.empty()) return 0;
  std::nth_element(mhz.begin(), mhz.begin() + static_cast<std::ptrdiff_t>(mhz.size() / 2), mhz.end());
  return mhz[mhz.size() / 2];
}

int highest_mhz() {
  int khz = 0;
  CHECK_STATUS(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
  return khz / 1000;
}

/// The least step of many, so that one which another kernel's turn made longer does not count.
__global__ void watch_timer(std::uint64_t* least_step) {
  std::uint64_t least = ~std::uint64_t{0}, before = global_ns();
  for (int steps = 0; steps < 100;) {
    const std::uint64_t now = global_ns();
    if (now == before) continue;
    if (steps > 0 && now - before < least) least = now - before;
    before = now;
    ++steps;
  }
  *least_step = least;
}

}  // namespace

int sm_clock_mhz(const Bench& bench) {
  Product product(bench);
  const Readings readings(bench);
  (void)readings.take();  // loads its code
  product.run();          // the clock settles
  const auto begin = readings.take();
  product.run();
  const double mhz = mhz_between(begin, readings.take());
  // That an SM's cycles are counted on from kernel to kernel is what devices do, but promised nowhere.
  if (mhz > 100 && mhz < 2.0 * highest_mhz()) return static_cast<int>(mhz + 0.5);
  std::fprintf(stderr,
               "the SMs' cycles are not counted on between kernels: sm_clock_mhz is the highest, not measured\n");
  return highest_mhz();
}

int timer_tick_ns() {
  const Operand<std::uint64_t> least(1, 1);
  watch_timer<<<1, 1>>>(least.at(0));
  CHECK_LAUNCH();
  CHECK_STATUS(cudaDeviceSynchronize());
  return static_cast<int>(fetch(least.at(0), 1)[0]);
}

}  // namespace moeline::bench
