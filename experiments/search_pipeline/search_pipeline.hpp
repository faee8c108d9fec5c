// Ways to share decoder layers out among the stages of a pipeline.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"

namespace moeline {

/// Decoder layers of each stage, in the order of the forward pass; one at least.
using Partition = std::vector<int>;

[[nodiscard]] double partition_count(int layers, int stages);
/// All of them. REQUIRES: they are few.
[[nodiscard]] std::vector<Partition> all_partitions(int layers, int stages);
/// One layer fewer on one stage, and one more on another.
[[nodiscard]] std::vector<Partition> neighbours_of(const Partition& partition);

// The fastest whole pipeline of a layout that fits into memory: which layers stand on which stage, and in which order
// ranks work.

struct PipelineRequest {
  std::filesystem::path scenario;
  std::vector<std::string> assignments;
  bool schedules = false;  ///< every pipeline's, beside the scenario's own
  bool stages = true;      ///< how many decoder layers each has
  std::size_t most = 400;  ///< steps that are simulated for each schedule
  double seconds = 0;      ///< after which nothing more is begun; 0: no limit
  std::size_t workers = 1;
};

/// A step, slot by slot and with GPUs alike (level: phase), or operator by operator with the scenario's own.
struct PipelineStep {
  std::string schedule;
  std::vector<std::string> changes;  ///< of the scenario
  double ms = 0;
  double memory_gib = 0;  ///< of the fullest GPU
  bool fits = false;
};

/// Of one schedule.
struct ScheduleAnswer {
  std::string schedule;
  std::optional<PipelineStep> best;  ///< that fits
  double floor_ms = 0;               ///< that no partition goes below: slots without waits
  double plans = 0;                  ///< partitions that there are
  std::size_t evaluated = 0, too_large = 0;
  double pruned = 0;       ///< that take too long at least
  bool exhaustive = true;  ///< nothing else was left out
};

struct PipelineAnswer {
  PipelineStep published;  ///< the scenario's own
  PipelineStep best;       ///< that fits; the published one where none is faster
  PipelineStep published_by_operators, best_by_operators;
  double floor_ms = 0;                         ///< that nothing searched for goes below
  std::vector<ScheduleAnswer> schedules;       ///< the fastest first
  std::map<std::string, std::string> refused;  ///< "schedule=gpipe", and why it is no scenario
};

/// Where a schedule has at most 200,000 partitions all are looked at, those that may be fastest first. Else layers move
/// one by one, from stages as equal as they can be, until no move helps: then others may be faster, down to the floor.
/// Throws SpecError: of the scenario, which must be a whole pipeline of operators.
[[nodiscard]] PipelineAnswer search_pipeline(const PipelineRequest& request, const Progress& progress);

}  // namespace moeline
