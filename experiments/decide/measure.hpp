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

/// What a GPU takes for each token of a step, us: a comparison of parts of models and of chunks of training, which have
/// no throughput.
inline constexpr const char* kGpuUsPerToken = "gpu_us_per_token";

/// The names that steps or runs of requests have.
[[nodiscard]] std::vector<std::string> measure_names();
/// Throws UnknownName for a name that neither has, and SpecError for one that is neither better high nor low.
[[nodiscard]] Measure measure_named(const std::string& name);

/// NaN where it does not apply.
[[nodiscard]] double value_of(const std::string& measure, const Run& run);
[[nodiscard]] double value_of(const std::string& measure, const ServeResult& result);

/// Tokens that each GPU computes in the step, on average: produced, drafted and rejected ones counted, or read. 0: of
/// given slots.
[[nodiscard]] double tokens_per_gpu(const Run& run);

/// Which part of the time of a step, or of a request, a measure follows from.
enum class TimeOf {
  all,          ///< step_ms, tokens/s; of requests throughput and request_ms
  first_token,  ///< of a request: ttft_ms
  next_tokens,  ///< of a request: tpot_ms
  nothing,      ///< memory, quantiles, parts of a step
};
[[nodiscard]] TimeOf time_of(const Measure& measure, bool of_requests);

/// Microseconds that a value stands for: of a time itself, of a rate what a token takes. 0: of no time.
[[nodiscard]] double us_of(const Measure& measure, double value);
/// What the microseconds of parts are: "us", "us of one GPU for each token", "us of the step, which ... does not follow
/// from".
[[nodiscard]] std::string time_unit_of(const Measure& measure, bool of_requests);

}  // namespace moeline
