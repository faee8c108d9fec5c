// Points of a study on all cores.
#pragma once

#include "base/progress.hpp"
#include "experiments/sweep/share.hpp"
#include "experiments/sweep/store.hpp"

namespace moeline {

/// Throws SpecError where no point of the study is a scenario: a misspelt axis is one message, not a row for every
/// point. Where some are, the others' reasons are rows. Of more than a thousand points a thousand are tried, and a study
/// is refused if none is a scenario, and all for one reason.
void check_loads(const Study& study);

/// Simulates the share's points that the store lacks. A point that fails is a row with its reason. Throws what the
/// store throws, after the other workers have ended their points, and says how many are stored.
void run_study(const Study& study, const Share& share, std::size_t workers, Store& store, const Progress& progress);

}  // namespace moeline
