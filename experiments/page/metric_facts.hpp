// What the name of a metric does not say: its unit, and whether more of it is better.
#pragma once

#include <string>
#include <string_view>

namespace moeline {

enum class Better { neither, higher, lower };

struct MetricFacts {
  std::string unit;  ///< empty of a ratio
  Better better = Better::neither;
};

/// Of a metric of runs (run_metrics.hpp) or of tokens_per_s_per_user, 1000 / tpot_ms. Of another name: no unit,
/// neither.
[[nodiscard]] MetricFacts facts_of_metric(std::string_view name);

}  // namespace moeline
