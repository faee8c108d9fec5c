// Chance that is the same with every compiler and library: equal seeds, equal draws. And what is known of normal
// numbers without drawing any.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace moeline {

/// Finalizer of SplitMix64 (Steele et al., 2014): neighbouring numbers give unlike ones.
[[nodiscard]] constexpr std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// SplitMix64: of one word, so that it starts at no cost.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() { return scrambled(state_ += 0x9e3779b97f4a7c15U); }

 private:
  std::uint64_t state_;
};

template <class Engine>
class RandomBy {
 public:
  explicit RandomBy(std::uint64_t seed) : engine_(seed) {}
  /// The `stream`-th of many independent sequences of one seed.
  RandomBy(std::uint64_t seed, std::uint64_t stream) : engine_(scrambled((seed << 32U) ^ stream)) {}

  [[nodiscard]] std::uint64_t next() { return engine_(); }
  /// In [0, 1).
  [[nodiscard]] double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  /// Standard normal (Marsaglia's polar method).
  [[nodiscard]] double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    while (true) {
      const double x = 2 * uniform() - 1;
      const double y = 2 * uniform() - 1;
      const double square = x * x + y * y;
      if (square >= 1 || square == 0) continue;
      const double scale = std::sqrt(-2 * std::log(square) / square);
      spare_ = y * scale;
      has_spare_ = true;
      return x * scale;
    }
  }

 private:
  Engine engine_;
  double spare_ = 0;
  bool has_spare_ = false;
};

using Random = RandomBy<std::mt19937_64>;
/// For a few numbers of each of many sequences.
using BriefRandom = RandomBy<SplitMix64>;

// What is known of normal numbers without drawing any.

/// Below which a standard normal number lies with this probability. REQUIRES: 0 < probability < 1.
[[nodiscard]] double normal_quantile(double probability);

/// Expected maximum of `count` independent standard normal numbers (0 for one).
[[nodiscard]] double expected_maximum(int count);

/// Where the `rank`-th smallest of `count` independent numbers, from 0, is expected to lie: the probability of one that
/// is below it, to a hundredth for normal numbers (Blom, 1958).
[[nodiscard]] constexpr double probability_in_order(int rank, int count) { return (rank + 0.625) / (count + 0.25); }

/// Expected values of `count` of them, the smallest first.
[[nodiscard]] std::vector<double> expected_in_order(int count);

// Normal numbers that many ask for: the points of a sweep are drawn alike, and drawing is most of what a draw costs.

using Normals = std::shared_ptr<const std::vector<double>>;

/// The first numbers of Random(seed, stream).normal(), `count` or more of them, the same ones for whoever asks again.
/// Thread-safe; forgets all when it has drawn many.
[[nodiscard]] Normals normals(std::uint64_t seed, std::uint64_t stream, std::size_t count);

}  // namespace moeline
