#include "bench.hpp"

#include <utility>

#include "timing.hpp"

namespace moeline::bench {

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
