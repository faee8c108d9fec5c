// The schedules that a scenario can name. What each of them does stands in the file of its name.
#pragma once

#include <string>
#include <vector>

namespace moeline {

struct ScheduleKind {
  std::string name;
  std::string about;                ///< one line for whoever chooses
  std::vector<std::string> phases;  ///< of the workload that it goes with
};

/// In the order in which they are listed: those of one rank, then whole pipelines.
[[nodiscard]] const std::vector<ScheduleKind>& schedule_kinds();
[[nodiscard]] const std::vector<std::string>& schedule_names();

/// Case counts for nothing. Throws UnknownName with the nearest name.
[[nodiscard]] const ScheduleKind& schedule_named(const std::string& name);

}  // namespace moeline
