#include "routing/expert_loads.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <numeric>

#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "routing/load_file.hpp"

namespace moeline {
namespace {

// Not std::shuffle, whose result differs between libraries. The bias of the remainder is below 2^-50.
void shuffle(LayerLoads& loads, Random& random) {
  for (std::size_t i = loads.size(); i > 1; --i) std::swap(loads[i - 1], loads[random.next() % i]);
}

LayerLoads power_law(double alpha, std::size_t experts) {
  LayerLoads loads(experts);
  for (std::size_t i = 0; i < experts; ++i) loads[i] = std::pow(static_cast<double>(i + 1), -alpha);
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(experts);
  for (double& load : loads) load /= mean;
  return loads;
}

Loads shuffled(const LayerLoads& ranked, std::size_t layers, unsigned seed) {
  Random random(seed);
  Loads loads(layers, ranked);
  for (LayerLoads& layer : loads) shuffle(layer, random);
  return loads;
}

Loads from_file(const std::filesystem::path& file, int layers, int experts) {
  LoadFile read = read_load_file(file, {.experts = experts});
  if (read.steps.size() > 1) {
    throw SpecError(file.string(), 0, fmt::format("has {} steps; one is wanted here", read.steps.size()));
  }
  if (read.layers.size() != static_cast<std::size_t>(layers)) {
    throw SpecError(file.string(), 0,
                    fmt::format("has {} layers; the model has {} MoE layers", read.layers.size(), layers));
  }
  return std::move(read.loads.front());
}

}  // namespace

Loads expert_loads(const LoadSource& source, int layers, int experts) {
  MOELINE_CHECK(layers > 0 && experts > 0, fmt::format("{} layers, {} experts", layers, experts));
  const auto count = static_cast<std::size_t>(experts);
  switch (source.distribution) {
    case LoadDistribution::balanced:
      return Loads(static_cast<std::size_t>(layers), LayerLoads(count, 1.0));
    case LoadDistribution::power_law:
      return shuffled(power_law(source.alpha, count), static_cast<std::size_t>(layers), source.seed);
    case LoadDistribution::file:
      return from_file(source.file, layers, experts);
  }
  check_failed("a known distribution", __FILE__, __LINE__, std::to_string(static_cast<int>(source.distribution)));
}

}  // namespace moeline
