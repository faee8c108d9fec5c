// Why a run or a measured trace takes as long as it does.
#pragma once

#include <vector>

#include "experiments/run/run.hpp"
#include "measured/replay.hpp"
#include "timeline/bounds.hpp"
#include "timeline/critical_path.hpp"

namespace moeline {

struct Explanation {
  Time start{}, span{};          ///< of the graph's time: from the first kernel to the end
  std::vector<PathStep> path{};  ///< of the span
  std::vector<Blame> blame{};    ///< sums to the span
  std::vector<Bound> bounds{};   ///< largest first; of several ranks' resources of one name the greatest
};

/// "gemm in attn-1: running"
[[nodiscard]] std::string title_of(const Blame& blame);

[[nodiscard]] Explanation explain(const Run& run);

/// `timeline`: of the replay graph.
[[nodiscard]] Explanation explain(const ReplayGraph& replay, const Timeline& timeline);

}  // namespace moeline
