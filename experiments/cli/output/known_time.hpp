// How the kernels' time behind a result is known.
#pragma once

#include <string>

#include "experiments/report/fields.hpp"
#include "experiments/run/run_metrics.hpp"

namespace moeline {

[[nodiscard]] Fields<KnownTime> known_fields();
void add_known_shares(Json& json, const KnownTime& time);

/// One line, of `whose` kernels.
[[nodiscard]] std::string known_line(const std::string& whose, const KnownTime& time);

}  // namespace moeline
