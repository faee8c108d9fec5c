// What a prediction must beat to be worth anything, by the names under which compare and validate print it.
#pragma once

#include <string_view>

#include "schedules/scenario/scenario.hpp"

namespace moeline {

inline constexpr const char* kCommunicationFree = "communication_free";  ///< takes no time, SMs or bandwidth
inline constexpr const char* kEverythingSerial = "everything_serial";    ///< no overlap
inline constexpr const char* kCopiedMean = "copied_mean";  ///< the mean of the same quantity measured elsewhere

/// The scenario of the first or second of these.
[[nodiscard]] inline Setup null_model(std::string_view name, Setup setup) {
  if (name == kCommunicationFree) setup.free_communication = true;
  if (name == kEverythingSerial) {
    is_training_step(setup.scenario) ? setup.scenario.overlap = "none" : setup.scenario.schedule = "sequential";
  }
  return setup;
}

}  // namespace moeline
