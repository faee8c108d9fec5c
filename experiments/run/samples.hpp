// A scenario run again and again with other seeds: how much of the result is chance.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "experiments/run/run.hpp"

namespace moeline {

/// Median, and between which values nine in ten samples lie.
struct Band {
  double median = 0, p5 = 0, p95 = 0;
};

/// By linear interpolation between the ordered values. REQUIRES: at least one.
[[nodiscard]] Band band_of(std::vector<double> values);

struct MetricBand {
  std::string name;  ///< as in `metrics`
  Band band;
};

/// Of one phase of rank 0.
struct PhaseBand {
  std::string phase;
  std::uint32_t micro_batch = 0;
  std::uint32_t layer = 0;
  Band barrier_us;  ///< time in its barrier
  Band wait_us;     ///< time that the compute stream waited, before a kernel of it, for communication
};

struct Samples {
  int count = 0;
  std::vector<MetricBand> metrics;
  std::vector<PhaseBand> phases;  ///< those that have a barrier or wait in some sample, in order of execution
};

/// Runs the scenario with its seed and the `scenario.samples` - 1 following ones, on all cores; `use` gets the position
/// of the seed and the run, on one of several threads.
void for_each_sample(const Setup& setup, const std::function<void(std::size_t, Run)>& use,
                     const Progress& progress = {});

/// The scenario with its seed and the `scenario.samples` - 1 following ones, on all cores. The result does not depend
/// on their number.
[[nodiscard]] Samples sample(const Setup& setup, const Progress& progress = {});

}  // namespace moeline
