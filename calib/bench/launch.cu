// What it costs that work comes in kernels: the device's gap between two of them, and the host's time to launch one, in
// a stream and in a CUDA graph.
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "buffer.hpp"
#include "clock.cuh"
#include "facts.hpp"
#include "grid.hpp"
#include "timing.hpp"

namespace moeline::bench {
namespace {

constexpr int kSamples = 7;
constexpr int kStamped = 200;  // kernels in a row, each of some 20 us
constexpr int kGraphNodes = 100, kGraphLaunches = 5;
constexpr int kEmptyLaunches = kGraphNodes * kGraphLaunches;  // below what a stream queues before the host must wait

struct Stamp {
  std::uint64_t begin, end;
};

/// The timer that stamps are read from may advance once in a microsecond only, which is as long as a gap. The mean of
/// many gaps is right all the same if their places between two steps of the timer are spread evenly, so kernels last by
/// the SM's own clock, each another time than the one before. Waiting for the timer itself would end all of them just
/// after a step.
__global__ void stamp(Stamp* of_block, long long cycles) {
  const std::uint64_t begin = global_ns();
  const long long first = clock64();
  while (clock64() - first < cycles) {
  }
  of_block[blockIdx.x] = {begin, global_ns()};
}

/// Of the `i`th kernel: 20 us and more, in steps far finer than the timer's over a range that is wider.
long long stamped_cycles(int i) { return 40'000 + 74 * i % 4096; }

__global__ void empty() {}

/// Work captured once and launched as a whole.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& enqueue) {
    CHECK_STATUS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    CHECK_STATUS(cudaStreamEndCapture(stream, &graph_));
    CHECK_STATUS(cudaGraphInstantiate(&executable_, graph_, 0));
    CHECK_STATUS(cudaGraphUpload(executable_, stream));
    CHECK_STATUS(cudaStreamSynchronize(stream));
  }
  ~Graph() {
    (void)cudaGraphExecDestroy(executable_);
    (void)cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const { CHECK_STATUS(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

/// From the last block's end in one kernel to the first block's start in the next, on average.
double mean_gap_us(const std::vector<Stamp>& stamps, int blocks) {
  const auto earlier = [](const Stamp& a, const Stamp& b) { return a.begin < b.begin; };
  const auto ends_earlier = [](const Stamp& a, const Stamp& b) { return a.end < b.end; };
  double sum = 0;
  for (auto kernel = stamps.begin() + blocks; kernel != stamps.end(); kernel += blocks) {
    const auto end = std::max_element(kernel - blocks, kernel, ends_earlier)->end;
    const auto begin = std::min_element(kernel, kernel + blocks, earlier)->begin;
    sum += static_cast<double>(static_cast<std::int64_t>(begin - end));
  }
  return 1e-3 * sum / (kStamped - 1);
}

std::vector<double> gaps_us(const Bench& bench, bool in_graph) {
  const int blocks = bench.device.sms;
  const Operand<Stamp> stamps(std::int64_t{kStamped} * blocks, 1);
  const auto enqueue = [&] {
    for (int i = 0; i < kStamped; ++i) {
      stamp<<<static_cast<unsigned>(blocks), 32, 0, bench.stream>>>(stamps.at(0) + i * blocks, stamped_cycles(i));
      CHECK_LAUNCH();
    }
  };
  enqueue();  // loads the code, which a capture could not
  CHECK_STATUS(cudaStreamSynchronize(bench.stream));
  Gate gate;
  const Graph graph(bench.stream, enqueue);
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    gate.pass(bench.stream, [&] {
      if (in_graph)
        graph.launch(bench.stream);
      else
        enqueue();
    });
    samples.push_back(mean_gap_us(fetch(stamps.at(0), stamps.elements()), blocks));
  }
  return samples;
}

std::vector<double> host_us(const Bench& bench, bool in_graph) {
  const auto enqueue = [&](int launches) {
    for (int i = 0; i < launches; ++i) empty<<<1, 32, 0, bench.stream>>>();
    CHECK_LAUNCH();
  };
  enqueue(1);
  CHECK_STATUS(cudaStreamSynchronize(bench.stream));
  const Graph graph(bench.stream, [&] { enqueue(kGraphNodes); });
  std::vector<double> samples;
  for (int i = -1; i < kSamples; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (!in_graph) enqueue(kEmptyLaunches);
    for (int j = 0; in_graph && j < kGraphLaunches; ++j) graph.launch(bench.stream);
    const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begin;
    CHECK_STATUS(cudaStreamSynchronize(bench.stream));
    if (i >= 0) samples.push_back(passed.count() / kEmptyLaunches);  // the first one warms up
  }
  return samples;
}

}  // namespace

Fact launch_fact() {
  return {"launch",
          runs_everywhere,
          [](const Device&, Preset) { return launch_cases(); },
          {},  // no kernel of its own to run beside others
          [](const Bench& bench, const Case& c) -> std::vector<Metric> {
            const bool in_graph = c.text("mode") == "graph";
            return {{"time", "us", gaps_us(bench, in_graph)}, {"host", "us", host_us(bench, in_graph)}};
          }};
}

}  // namespace moeline::bench
