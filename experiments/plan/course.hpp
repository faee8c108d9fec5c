// A plan's answer along a day: how many of its units each part of the day takes.
#pragma once

#include <string>
#include <vector>

#include "experiments/plan/solve.hpp"

namespace moeline {

struct CoursePart {
  double load = 1;  ///< over the plan's rate
  int prefill_units = 0, decode_units = 0;
  int gpus = 0;  ///< 0: this deployment does not serve so much
};

struct Course {
  std::vector<CoursePart> parts;
  double mean_gpus = 0;
  int most_gpus = 0;
};

/// Units are as the deployment has them; only how many there are changes, each part on its own, as if those that are
/// not needed were switched off and on in no time. REQUIRES: the plan has a course.
[[nodiscard]] Course along_the_day(const Plan& plan, const Deployment& deployment, KnownSteps& known,
                                   std::size_t workers, const Progress& progress = {});

}  // namespace moeline
