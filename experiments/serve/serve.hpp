// A scenario whose workload is requests: what each of them waits for, and what the replicas get done.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "experiments/serve/measures.hpp"
#include "experiments/serve/schedulers.hpp"
#include "experiments/serve/step_grids.hpp"

namespace moeline {

/// Replicas that are alike.
struct ServePool {
  Setup setup;  ///< of a step with one request
  int replicas = 1;
  ReplicaShape shape;
  Memory memory{};  ///< of each GPU, with all the cache that fits
  std::size_t simulated_steps = 0;
  KnownTime known{};         ///< of these
  double steps_error = 0;    ///< between simulated ones, the largest of those that were simulated once more to know
  double middles_error = 0;  ///< the largest of those in the middle between simulated ones

  [[nodiscard]] double gpus() const { return static_cast<double>(setup.scenario.parallelism.world()) * replicas; }
};

struct ServeResult {
  ServeWorkload workload;
  std::vector<SchedulerDefault> defaults{};  ///< what the scheduler says where the scenario does not
  ServePool answers{};                       ///< and prompts, where these have no replicas of their own
  std::optional<ServePool> prompts{};
  ServeLog log{};
  ServeMeasures measures{};

  [[nodiscard]] double gpus() const { return answers.gpus() + (prompts ? prompts->gpus() : 0); }
};

/// Throws SpecError: of the scenario, or of a step that it asks for.
[[nodiscard]] ServeResult serve(const Spec& scenario, const std::vector<std::string>& assignments,
                                const Progress& progress = {});

/// Whether the scenario, so changed, asks for that rather than for a step.
[[nodiscard]] bool serves(const Spec& scenario, const std::vector<std::string>& assignments);

}  // namespace moeline
