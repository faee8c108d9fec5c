// A kernel with next to nothing to do: what is left is the time that any kernel takes.
#include <memory>

#include "buffer.hpp"
#include "compare.hpp"
#include "facts.hpp"
#include "grid.hpp"
#include "numbers.hpp"
#include "random.hpp"

namespace moeline::bench {
namespace {

constexpr int kThreads = 128;

__global__ void negate(const float* in, float* out) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = -in[i];
}

struct Operands {
  Operand<float> in, out;
};

Kernel prepare(const Bench& bench, const Case& c) {
  const std::int64_t blocks = c.number("blocks"), count = blocks * kThreads;
  auto o = std::make_shared<Operands>(Operands{{count, 1}, {count, 1}});  // warm: it stands for fills and counters
  fill(o->in, 1, -1, 1, bench.stream);
  auto launch = [o, blocks](cudaStream_t stream, int turn) {
    negate<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(o->in.at(turn), o->out.at(turn));
    CHECK_LAUNCH();
  };
  auto compare = [o, count] {
    auto want = numbers(fetch(o->in.at(0), count));
    for (double& x : want) x = -x;
    require_close(numbers(fetch(o->out.at(0), count)), want, 0);
  };
  return checked(launch, compare);
}

}  // namespace

Fact small_fact() {
  return kernel_fact(
      "small", runs_everywhere, [](const Device&, Preset) { return small_cases(); }, prepare);
}

}  // namespace moeline::bench
