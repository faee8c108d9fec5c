// What needs whose result: facts of the model, whatever the schedule.
#pragma once

#include <string>

namespace moeline {

struct PhaseDependency {
  std::string before;
  std::string after;
  bool next_layer = false;  ///< `after` belongs to the layer executed next
};

}  // namespace moeline
