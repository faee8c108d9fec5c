// Time is a whole number of picoseconds, so that equal instants compare equal and no epsilon is ever needed.
// One int64 of picoseconds holds 106 days.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "base/error.hpp"

namespace moeline {

/// A duration, or an instant counted from the start of the timeline.
using Time = std::chrono::duration<std::int64_t, std::pico>;

inline constexpr double kPicosecondsPerMicrosecond = 1e6;
inline constexpr double kLongestTimeUs = 1e12;  // 11.6 days: sums of several such times still fit an int64

[[nodiscard]] inline double to_us(Time time) { return static_cast<double>(time.count()) / kPicosecondsPerMicrosecond; }

/// part / whole; 0 of nothing.
[[nodiscard]] inline double ratio(Time part, Time whole) {
  return whole > Time::zero() ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

/// Rounds to the nearest picosecond. Throws SpecError when the time is negative, not a number, or beyond 11 days.
[[nodiscard]] inline Time from_us(double us) {
  if (!(us >= 0) || us > kLongestTimeUs) throw SpecError("a time of " + shortest(us) + " us is out of range");
  return Time{std::llround(us * kPicosecondsPerMicrosecond)};
}

}  // namespace moeline
