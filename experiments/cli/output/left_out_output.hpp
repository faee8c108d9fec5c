// How far machines that were left out came, in JSON.
#pragma once

#include "experiments/report/fields.hpp"
#include "experiments/run/carried_over.hpp"

namespace moeline {

inline constexpr const char* kCarriedOver =
    "Where most of the time is another machine's kernels: how far such steps have been off";

[[nodiscard]] Fields<LeftOutError> left_out_fields();
[[nodiscard]] Fields<CarriedOver> carried_over_fields();

}  // namespace moeline
