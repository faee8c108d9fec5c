// cudaMemcpyAsync from the device to itself: what the driver itself makes of a copy.
#include <memory>

#include "buffer.hpp"
#include "compare.hpp"
#include "facts.hpp"
#include "grid.hpp"
#include "numbers.hpp"
#include "random.hpp"

namespace moeline::bench {
namespace {

struct Operands {
  Operand<float> in, out;
};

Kernel prepare(const Bench& bench, const Case& c) {
  const std::int64_t moved = c.number("bytes") / 2, count = moved / 4;  // half is read, half is written
  const int sets = cold_sets(bench.device, c.number("bytes"));
  auto o = std::make_shared<Operands>(Operands{{count, sets}, {count, sets}});
  fill(o->in, 1, -1, 1, bench.stream);
  auto launch = [o, moved](cudaStream_t stream, int turn) {
    CHECK_STATUS(cudaMemcpyAsync(o->out.at(turn), o->in.at(turn), static_cast<std::size_t>(moved),
                                 cudaMemcpyDeviceToDevice, stream));
  };
  auto compare = [o, count] {
    constexpr std::int64_t piece = 256;
    for (const auto place : sampled_places(count - piece))
      require_close(numbers(fetch(o->out.at(0) + place, piece)), numbers(fetch(o->in.at(0) + place, piece)), 0);
  };
  return checked(launch, compare);
}

}  // namespace

Fact copy_fact() {
  return kernel_fact(
      "copy", runs_everywhere, [](const Device&, Preset preset) { return copy_cases(preset); }, prepare);
}

}  // namespace moeline::bench
