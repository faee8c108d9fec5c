// A whole step of training, rank by rank: what its time went into, and what its memory held.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/timeline.hpp"
#include "experiments/memory/step_memory.hpp"
#include "schedules/pipeline/training_step.hpp"
#include "timeline/phases.hpp"

namespace moeline {

/// A slot runs from the start of its first kernel to the end of its last, sends aside; where two overlap at their ends,
/// the time counts for the first. Parts add up to the step.
struct StepParts {
  Time forward{}, backward{}, weight{}, overlapped{};  ///< in slots F, B (with and without W), W, F&B
  Time optimizer{};  ///< from the end of the last slot of any rank: gradients that are left, optimizer, parameters
  Time bubble{};     ///< the rest: a rank has no slot to run
};

/// Every part by its name in results and in the table, in their order.
struct NamedPart {
  const char* key;
  const char* meaning;  ///< of one rank, as schemas say it
  Time StepParts::*time;
};
inline constexpr std::array<NamedPart, 6> kStepParts = {
    {{"forward_ms", "ms in slots F, from first to last kernel", &StepParts::forward},
     {"backward_ms", "ms in slots B, with and without W", &StepParts::backward},
     {"weight_ms", "ms in slots W", &StepParts::weight},
     {"overlapped_ms", "ms in slots F&B", &StepParts::overlapped},
     {"bubble_ms", "ms in which a rank has no slot to run", &StepParts::bubble},
     {"optimizer_ms", "ms from the last slot of any rank: gradients that are left, optimizer, all-gather",
      &StepParts::optimizer}}};

struct RankStep {
  StepParts parts;
  RankMemory memory;
};

struct StepReport {
  std::vector<PhaseTimes> slots;  ///< a row for each, rank by rank; `layer` is the chunk of the rank's model
  StepLayout layout;
  std::vector<OffloadedStay> stays;
  std::vector<RankStep> ranks;
  StepParts mean;

  [[nodiscard]] const RankStep& fullest() const;
  [[nodiscard]] std::size_t fullest_rank() const;
};

inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
/// By phase of the graph, the slot that it belongs to, or kNoSlot: what replicas gather and reduce runs beside slots.
[[nodiscard]] std::vector<std::uint32_t> slots_of_phases(const StepLayout& layout, const TaskGraph& graph);

/// The memory of its ranks, of the setup's choices. REQUIRES: the report has its slots.
void add_memory(const Setup& setup, StepReport& report);
[[nodiscard]] StepReport report_step(const Setup& setup, const Program& program, const Timeline& timeline,
                                     StepLayout layout);

}  // namespace moeline
