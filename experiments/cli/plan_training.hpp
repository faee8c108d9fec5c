// moeline plan of a training job.
#pragma once

#include <string>

#include "experiments/cli/console.hpp"

namespace moeline {

struct PlanOptions {
  std::string plan;
  std::string format = "table";
  std::string html;
  std::size_t workers = 0;  ///< 0: as many as there are cores
  bool no_sensitivity = false;
  bool confirm = false;
  bool force = false;
};

/// The exit code.
[[nodiscard]] int plan_training(const PlanOptions& options, const Console& console);

}  // namespace moeline
