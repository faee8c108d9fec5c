// What a step is short of.
#pragma once

namespace moeline {

/// "network" where communication is in the open for a tenth of a step or more, else "compute".
[[nodiscard]] inline const char* network_or_compute(double exposed_ms, double step_ms) {
  constexpr double kMuch = 0.1;
  return exposed_ms >= kMuch * step_ms ? "network" : "compute";
}

}  // namespace moeline
