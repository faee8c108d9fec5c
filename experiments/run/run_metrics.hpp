// The numbers of a whole run by the names that JSON, samples and facts have for them.
#pragma once

#include <span>

#include "experiments/run/run.hpp"

namespace moeline {

struct RunMetric {
  const char* name;
  double (*value)(const Run& run);
  bool (*applies)(const Run& run);
};

[[nodiscard]] std::span<const RunMetric> run_metrics();

}  // namespace moeline
