// By what settings are compared: a number of a step, or of a run of requests.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/metrics.hpp"
#include "experiments/run/run.hpp"
#include "experiments/serve/serve.hpp"

namespace moeline {

/// A metric by its name, which a step, a run of requests or both may have.
struct Measure {
  std::string name, unit;
  Better better = Better::neither;
};

/// The names that steps or runs of requests have.
[[nodiscard]] std::vector<std::string> measure_names();
/// Throws UnknownName for a name that neither has, and SpecError for one that is neither better high nor low.
[[nodiscard]] Measure measure_named(const std::string& name);

/// NaN where it does not apply.
[[nodiscard]] double value_of(const std::string& measure, const Run& run);
[[nodiscard]] double value_of(const std::string& measure, const ServeResult& result);

/// Microseconds that a value stands for: of a time itself, of a rate what a token takes. 0: of no time.
[[nodiscard]] double us_of(const Measure& measure, double value);
/// What these microseconds are: "us", or "us of one GPU for each token".
[[nodiscard]] std::string time_unit_of(const Measure& measure);

}  // namespace moeline
