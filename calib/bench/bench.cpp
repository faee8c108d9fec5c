#include "bench.hpp"

#include <utility>

#include "clocks.hpp"
#include "timing.hpp"

namespace moeline::bench {

Bench open_bench() {
  Bench bench;
  bench.device = open_device();
  for (cudaStream_t* stream : {&bench.stream, &bench.neighbour})
    CHECK_STATUS(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  CHECK_STATUS(cublasCreate(&bench.blas));
  CHECK_STATUS(cublasSetPointerMode(bench.blas, CUBLAS_POINTER_MODE_HOST));
  CHECK_STATUS(cublasLtCreate(&bench.blas_lt));
  bench.device.sm_clock_mhz = sm_clock_mhz(bench);
  bench.device.timer_tick_ns = timer_tick_ns();
  return bench;
}

Fact kernel_fact(std::string key, std::function<std::string(const Device&)> cannot_run,
                 std::function<std::vector<Case>(const Device&, Preset)> cases,
                 std::function<Kernel(const Bench&, const Case&)> prepare) {
  auto run = [prepare](const Bench& bench, const Case& c) -> std::vector<Metric> {
    const Kernel kernel = prepare(bench, c);
    kernel.check(bench.stream);
    return {{"time", "us", time_us(bench.stream, kernel.launch)}};
  };
  return {std::move(key), std::move(cannot_run), std::move(cases), std::move(prepare), std::move(run)};
}

}  // namespace moeline::bench
