// What needs whose result: facts of the model, whatever the schedule.
#pragma once

#include <string>

namespace moeline {

struct PhaseDependency {
  std::string before;
  std::string after;
  bool next_layer = false;  ///< `after` belongs to the layer executed next
};

/// By the names of all phases: "dispatch(F)", "combine".
[[nodiscard]] inline bool is_transfer(const std::string& phase) {
  return phase.starts_with("dispatch") || phase.starts_with("combine");
}

}  // namespace moeline
