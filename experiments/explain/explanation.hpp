// Why a run or a measured trace takes as long as it does.
#pragma once

#include <vector>

#include "experiments/explain/sensitivity.hpp"
#include "experiments/run/run.hpp"
#include "measured/replay.hpp"
#include "timeline/bounds.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/period.hpp"

namespace moeline {

struct Explanation {
  Time start{}, span{};                          ///< of the graph's time: from the first kernel to the end
  std::vector<PathStep> path{};                  ///< of the span
  std::vector<Blame> blame{};                    ///< sums to the span
  std::vector<SpanSensitivity> sensitivities{};  ///< largest first
  std::vector<Bound> bounds{};                   ///< largest first: path, cycle, sm_time, hbm, nvlink, nic
  std::optional<Period> period{};                ///< where layers repeat
};

/// "gemm in attn-1: running"
[[nodiscard]] std::string title_of(const Blame& blame);

/// REQUIRES: timelines recorded with their changes.
[[nodiscard]] Explanation explain(const Run& run);

/// `timeline`: of the replay graph.
[[nodiscard]] Explanation explain(const ReplayGraph& replay, const Timeline& timeline);

}  // namespace moeline
