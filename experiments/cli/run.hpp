// A scenario simulated: what simulate and compare both need.
#pragma once

#include <string>
#include <vector>

#include "schedules/schedules.hpp"
#include "timeline/metrics.hpp"
#include "timeline/phases.hpp"

namespace moeline {

struct Run {
  Setup setup;
  Program program;
  Timeline timeline;
  Metrics metrics;
  std::vector<PhaseTimes> phases;
  double simulate_ms = 0;  ///< the engine alone
  std::vector<std::string> warnings;

  [[nodiscard]] double layer_us() const { return to_us(metrics.span) / setup.scenario.layers; }
  /// FLOPs of matrix products and attention, recomputation left out, over the BF16 peak.
  [[nodiscard]] double mfu() const;
  /// Solo time of kernels whose curve was not measured at their size or number of SMs, over that of all kernels.
  [[nodiscard]] double extrapolated_share() const;
};

[[nodiscard]] Run run_scenario(const Setup& setup, bool record_changes = false);

}  // namespace moeline
