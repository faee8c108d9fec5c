// Python's random.Random(seed).random(): benchmarks drew their shapes from it, so that we can draw the same again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace moeline {

/// Fills the Mersenne Twister's state from a seed as Python does (init_by_array of its authors, Matsumoto and
/// Nishimura, 2002).
class PythonSeed {
 public:
  using result_type = std::uint32_t;

  explicit PythonSeed(std::uint32_t seed) : seed_(seed) {}

  /// REQUIRES: a range of 624 words.
  template <typename Iterator>
  void generate(Iterator first, Iterator last) const {
    std::vector<std::uint32_t> state(static_cast<std::size_t>(last - first));
    state[0] = 19650218;
    for (std::uint32_t i = 1; i < state.size(); ++i) state[i] = 1812433253U * mixed(state[i - 1]) + i;
    std::size_t i = 1;
    const auto advance = [&] {
      if (++i < state.size()) return;
      state[0] = state.back();
      i = 1;
    };
    for (std::size_t n = 0; n < state.size(); ++n, advance()) {
      state[i] = (state[i] ^ (mixed(state[i - 1]) * 1664525U)) + seed_;
    }
    for (std::size_t n = 1; n < state.size(); ++n, advance()) {
      state[i] = (state[i] ^ (mixed(state[i - 1]) * 1566083941U)) - static_cast<std::uint32_t>(i);
    }
    state[0] = 0x80000000U;
    std::copy(state.begin(), state.end(), first);
  }

 private:
  static std::uint32_t mixed(std::uint32_t word) { return word ^ (word >> 30); }

  std::uint32_t seed_;
};

class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed) {
    PythonSeed sequence(seed);
    engine_.seed(sequence);
  }

  /// random(): 53 bits, in [0, 1).
  double next() {
    const double high = static_cast<double>(engine_() >> 5), low = static_cast<double>(engine_() >> 6);
    return (high * 67108864 + low) / 9007199254740992;
  }

  double uniform(double from, double to) { return from + (to - from) * next(); }

 private:
  std::mt19937 engine_;
};

}  // namespace moeline
