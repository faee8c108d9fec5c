// How far steps of machines that nobody has measured may be off.
#pragma once

#include <optional>
#include <string>

#include "experiments/run/run.hpp"
#include "hardware/left_out.hpp"

namespace moeline {

/// Of a run whose kernels are another machine's at this one's facts.
struct CarriedOver {
  double share = 0;   ///< of the solo time
  Kin kin{};          ///< what the two machines share
  std::string steps;  ///< "decode step", "prefill step"; empty: none of those that were held against the truth
  std::optional<LeftOutError> error{};  ///< of such steps of machines that were left out; nothing where none was
};

/// Nothing where most of the solo time is the machine's own.
[[nodiscard]] std::optional<CarriedOver> carried_over(const Run& run);

/// "such steps have been 11 % off in the median, 26 at 95 %". REQUIRES: the error is known.
[[nodiscard]] std::string short_band(const CarriedOver& carried);

/// "99 % of the solo time is another machine's at these facts (other tensor cores): decode steps of machines that ..."
[[nodiscard]] std::string carried_over_warning(const CarriedOver& carried);

}  // namespace moeline
