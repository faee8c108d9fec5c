// The table of schedules: what the rest of the program must know about each, one row for each. It holds data only; the
// programs are in schedules/ and schedules/pipeline/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/scenario/choices.hpp"

namespace moeline {

/// A whole pipeline: slots F, B, W and F&B on each of its ranks. `pp` is their number.
struct PipelineKind {
  bool splits_backward = false;  ///< W is apart from B, at least in some slots
  bool overlaps_passes = false;  ///< it has slots F&B, of one forward and one backward pass
  bool may_combine = false;      ///< it has them where the scenario asks for that (Megatron's combined 1F1B)
  bool overlaps_sends = true;    ///< its authors send activations beside computation: the default
  int stages_per_rank = 1;       ///< 0: as many as the scenario's virtual_pp says
  int least_rounds = 0;          ///< micro-batches are at least so many times pp
  bool whole_rounds = false;     ///< and a multiple of pp
  bool two_directions = false;   ///< half of the micro-batches come from the other end: both numbers are even
};

struct ScheduleKind {
  std::string name;
  std::string about;                     ///< one line for whoever chooses
  std::vector<WorkloadPhase> phases;     ///< that it is for
  int micro_batches = 1;                 ///< that a step of inference is split into
  std::string plan;                      ///< the overlap plan that it follows by default; "": it overlaps nothing
  std::string blackwell_plan{};          ///< the same on GPUs that multiply FP4, where theirs is another
  std::string resident_plan{};           ///< the same where transfers hold SMs until their end, in decode
  bool releases = false;                 ///< a low-latency combine starts while the GEMM before it runs, by default
  std::vector<CommMode> modes;           ///< how tokens may reach experts in prefill and decode; training: normal
  std::optional<PipelineKind> pipeline;  ///< of whole pipelines

  [[nodiscard]] bool is_for(WorkloadPhase phase) const;
  [[nodiscard]] bool may_combine() const { return pipeline && pipeline->may_combine; }
};

/// In the order in which they are listed.
[[nodiscard]] const std::vector<ScheduleKind>& schedule_kinds();
[[nodiscard]] const std::vector<std::string>& schedule_names();

/// The word that leaves the choice among them to simulation (candidates.hpp).
inline constexpr const char* kAutoSchedule = "auto";

/// Case counts for nothing. Throws UnknownName with the nearest name.
[[nodiscard]] const ScheduleKind& schedule_named(const std::string& name);

}  // namespace moeline
