#include "experiments/plan/slots.hpp"

#include <cmath>

namespace moeline {

double share_that_waits(double slots, double busy) {
  if (busy >= slots) return 1;
  constexpr double kPi = 3.14159265358979323846;
  const double beta = (1 - busy / slots) * std::sqrt(slots);
  const double below = std::erfc(-beta / std::sqrt(2.0)) / 2;
  const double density = std::exp(-beta * beta / 2) / std::sqrt(2 * kPi);
  return density / (density + beta * below);
}

int units_for(double busy, double slots_per_unit, double share) {
  int units = static_cast<int>(std::ceil(busy / slots_per_unit));
  while (share_that_waits(units * slots_per_unit, busy) > share) ++units;
  return units;
}

}  // namespace moeline
