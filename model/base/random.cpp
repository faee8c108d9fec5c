#include "base/random.hpp"

#include <cmath>

namespace moeline {

// Neighbouring seeds and streams must not give neighbouring states (finalizer of SplitMix64; Steele et al., 2014).
std::uint64_t Random::mixed(std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t x = (seed << 32U) ^ stream;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

double Random::normal() {
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

}  // namespace moeline
