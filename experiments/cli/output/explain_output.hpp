// Why a run or a trace takes as long as it does, as JSON or tables.
#pragma once

#include <string>
#include <vector>

#include "timeline/bounds.hpp"
#include "timeline/critical_path.hpp"

namespace moeline {

struct Explanation {
  std::string title;
  Time start{}, span{};          ///< of the graph's time: from the first kernel to the end
  std::vector<PathStep> path{};  ///< of the span
  std::vector<Blame> blame{};    ///< sums to the span
  std::vector<Bound> bounds{};   ///< of several ranks' resources of one name the greatest
};

/// `stand_ins`: as critical_path's.
[[nodiscard]] Explanation explain(std::string title, const TaskGraph& graph, const Timeline& timeline, Time span,
                                  const std::vector<bool>& stand_ins = {});

[[nodiscard]] std::string to_json(const Explanation& explanation, const TaskGraph& graph);
[[nodiscard]] std::string to_table(const Explanation& explanation, const TaskGraph& graph);

}  // namespace moeline
