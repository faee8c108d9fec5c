// Chance that falls the same way with every standard library: not <random>'s distributions, whose results differ.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace moeline::testing {

struct Dice {
  explicit Dice(std::uint64_t seed) : bits(seed) {}

  std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  std::mt19937_64 bits;
};

}  // namespace moeline::testing
