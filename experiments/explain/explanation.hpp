// Why a run or a measured trace takes as long as it does.
#pragma once

#include <vector>

#include "experiments/explain/sensitivity.hpp"
#include "experiments/run/run_metrics.hpp"
#include "measured/replay.hpp"
#include "timeline/bounds.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/period.hpp"

namespace moeline {

/// Of a phase those kernels with the least slack that are off the path, most of them, and would be on it if they took
/// so much longer.
struct Alternative {
  std::string phase, kernel;
  Time slack{};  ///< the median of theirs
};

struct Explanation {
  std::string schedule{};                        ///< that ran; "" of a trace
  Time start{}, span{};                          ///< of the graph's time: from the first kernel to the end
  std::vector<PathStep> path{};                  ///< of the span
  std::vector<Blame> blame{};                    ///< sums to the span
  std::vector<SpanSensitivity> sensitivities{};  ///< largest first
  std::vector<Bound> bounds{};                   ///< largest first: path, cycle, sm_time, hbm, nvlink, nic, host
  std::vector<Blame> idle{};                     ///< time without the work of the busiest resource; largest first
  std::string idle_of{};                         ///< that resource; "": none
  std::vector<Alternative> alternatives{};       ///< least slack first
  std::optional<Period> period{};                ///< where layers repeat
  std::optional<KnownTime> known{};              ///< of a run
};

/// As `bounds` calls it: "nic" of "NIC out GB/s".
[[nodiscard]] std::string key_of_resource(const std::string& name);
/// "gemm in attn-1: running"
[[nodiscard]] std::string title_of(const Blame& blame);

/// What the end of a run waited for, the largest first; sums to explained_span(). `slowed` is not in parts by resource.
[[nodiscard]] std::vector<Blame> blame_of(const Run& run);

/// REQUIRES: timelines recorded with their changes.
/// Of a step with one task for each slot without sensitivities: its results come after delays that no item shortens.
[[nodiscard]] Explanation explain(const Run& run, const Progress& progress = {});
[[nodiscard]] bool is_by_slot(const Run& run);

/// `timeline`: of the replay graph.
[[nodiscard]] Explanation explain(const ReplayGraph& replay, const Timeline& timeline, const Progress& progress = {});

}  // namespace moeline
