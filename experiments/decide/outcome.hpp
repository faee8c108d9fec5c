// What a setting comes to: simulated as a step or as a run of requests.
#pragma once

#include <string>
#include <vector>

#include "experiments/decide/decision.hpp"
#include "experiments/decide/measure.hpp"
#include "experiments/decide/setting.hpp"
#include "experiments/sweep/study.hpp"

namespace moeline {

/// What the settings are asked at a point.
struct Terms {
  Measure by;
  std::vector<Condition> limits{};
};

/// Throws SpecError where `condition` is none, or names no metric.
[[nodiscard]] Condition limit_of(const std::string& condition);

/// The metric to compare by where nobody says: tokens/s per GPU, of answers where requests are served; step_ms of
/// layers, of a chunk of training and of given slots. Throws SpecError: of the scenario.
[[nodiscard]] std::string usual_measure(const DecideSetting& setting);

/// `changes` come after the setting's own; one that does not apply to it is left out (of a setting without drafts, how
/// many of them are accepted). What the scenario or a step of it is refused with is in the outcome.
[[nodiscard]] SettingOutcome outcome_of(const DecideSetting& setting, const std::vector<std::string>& changes,
                                        const Terms& terms);

/// The measure with the scenario's seed and those that follow it, `samples` in all: of a step all ranks are drawn, of
/// requests their arrivals and lengths. Equal seeds are equal draws for all settings. Throws SpecError.
[[nodiscard]] std::vector<double> drawn_values(const DecideSetting& setting, const std::vector<std::string>& changes,
                                               const Measure& by, int samples);

}  // namespace moeline
