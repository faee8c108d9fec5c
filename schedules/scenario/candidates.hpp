// What a scenario may be simulated as: by the schedule that it names, or, with `schedule: auto`, by each that applies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// A scenario with one schedule: all that is to be simulated, or why it cannot be.
struct Candidate {
  std::string schedule;
  std::optional<Setup> setup;
  std::string refused;  ///< without file and line; empty where there is a setup
};

/// With `schedule: auto`, all schedules of the table that are for the scenario's phase, in the table's order; else the
/// one that is named, alone. All do the same work, a chunk of training or a whole step (which `global_batch_size` asks
/// for), and no schedule is refused for the virtual_pp of another. Throws SpecError as load_setup does, and where no
/// schedule applies.
[[nodiscard]] std::vector<Candidate> load_candidates(const std::filesystem::path& path,
                                                     const std::vector<std::string>& assignments = {});
/// The same of what the file holds.
[[nodiscard]] std::vector<Candidate> read_candidates(const std::string& file, const std::string& content,
                                                     const std::vector<std::string>& assignments);

}  // namespace moeline
