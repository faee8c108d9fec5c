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

  /// Period of one forward and one backward layer: where all layers are equal, from the start of the last but one to
  /// that of the last; else span / layers.
  [[nodiscard]] double layer_us() const;
  /// FLOPs of matrix products and causal attention, recomputation left out, padded expert rows counted, over the BF16
  /// peak.
  [[nodiscard]] double mfu() const;
  /// Solo time of kernels whose curve was not measured at their size or number of SMs, over that of all kernels.
  [[nodiscard]] double extrapolated_share() const;
  /// Solo time of kernels that cost the same whatever their size, over that of all kernels.
  [[nodiscard]] double lumped_share() const;
  /// Every price rests on measurements at its size and number of SMs, or on a data sheet.
  [[nodiscard]] bool all_measured() const;
  /// Sum over all kernels.
  [[nodiscard]] double solo_us() const;
};

[[nodiscard]] Run run_scenario(const Setup& setup, bool record_changes = false);

}  // namespace moeline
