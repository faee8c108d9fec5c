// The table of numbers of a run of requests that can be compared and limited by name.
#pragma once

#include <span>
#include <string_view>

#include "experiments/run/metrics.hpp"
#include "experiments/serve/serve.hpp"

namespace moeline {

struct ServeMetric {
  const char* name;
  const char* unit;
  Better better;
  const char* meaning;
  double (*value)(const ServeResult& result);
};

[[nodiscard]] std::span<const ServeMetric> serve_metrics();
/// Null where none has this name.
[[nodiscard]] const ServeMetric* serve_metric_named(std::string_view name);

}  // namespace moeline
