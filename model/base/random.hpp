// Chance that is the same with every compiler and library: equal seeds, equal draws.
#pragma once

#include <cstdint>
#include <random>

namespace moeline {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// The `stream`-th of many independent sequences of one seed.
  Random(std::uint64_t seed, std::uint64_t stream) : engine_(mixed(seed, stream)) {}

  [[nodiscard]] std::uint64_t next() { return engine_(); }
  /// In [0, 1).
  [[nodiscard]] double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  /// Standard normal (Marsaglia's polar method).
  [[nodiscard]] double normal();

 private:
  static std::uint64_t mixed(std::uint64_t seed, std::uint64_t stream);

  std::mt19937_64 engine_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace moeline
