// How fast a machine's host is, by steps of training that wait for it.
#pragma once

#include <string>
#include <vector>

#include "base/progress.hpp"
#include "experiments/validate/facts.hpp"

namespace moeline {

struct HostStep {
  std::string id;  ///< of the fact
  double measured_ms = 0;
  double speed = 0;         ///< with which this step alone comes out as measured
  double predicted_ms = 0;  ///< with the speed of all
};

struct HostCalibration {
  std::string hardware;
  double speed = 0;  ///< MachineFacts::host_speed; the geometric mean of the steps'
  std::vector<HostStep> steps;
};

/// The facts are steps of one machine: `simulate` with the metric step_ms. Throws SpecError with the fact's line for
/// another, and for a step that does not wait for its host for most of its time.
[[nodiscard]] HostCalibration calibrate_host(const Subject& steps, const Progress& progress = {});

}  // namespace moeline
