// What a scenario says of training beside its workload.
#pragma once

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// `training`, `stages` and `level`. Refuses what does not apply. REQUIRES: all else has been read.
void read_training(const Spec& scenario, Setup& setup);

/// Where they do not enter, they must still be spelt right.
void check_training_keys(const Spec& scenario, const ScheduleKind& schedule);

}  // namespace moeline
