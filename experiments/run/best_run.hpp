// The best of the schedules that a scenario leaves open.
#pragma once

#include "experiments/run/run.hpp"
#include "schedules/scenario/candidates.hpp"

namespace moeline {

/// Simulates them all and keeps the one with the shortest step (of prefill of the whole model: the shortest TTFT) among
/// those that fit memory, or among all where none does; of equals the first. They do the same work, so that it has the
/// shortest step per token, too. `samples` above 1 choose by the first draw. One candidate alone is simulated and no
/// more. Throws SpecError where none can be simulated.
[[nodiscard]] Run best_run(const std::vector<Candidate>& candidates, const SimulateOptions& options = {});

/// Of a scenario file, with changes as after --set.
[[nodiscard]] Run best_run(const std::filesystem::path& path, const std::vector<std::string>& assignments = {},
                           const SimulateOptions& options = {});

}  // namespace moeline
