// What a small change of each time and capacity would do to a timeline.
//
// As long as the same things happen in the same order, the ends of tasks are linear in what they take: the work of a
// task is the sum of speed x time over the stretches between the instants at which its speed changes,
//     solo = sum over j of speed_j (t_{j+1} - t_j),
// so an end moves by   (d solo  -  sum of (speed_{j-1} - speed_j) d t_j  -  sum of (t_{j+1} - t_j) d speed_j) /
// speed_last, each t_j with the start or end of a neighbour that caused it, and the speeds with demands and capacities
// as their fair shares do (engine/share.hpp). Backwards from the end, every such share of the blame is handed to what
// caused it.
#pragma once

#include <vector>

#include "timeline/history.hpp"

namespace moeline {

/// Of the time from `since` to the end of a timeline. Where two things tie, so that more and less have different
/// answers, one of the two is taken.
struct Gradient {
  std::vector<double> solo;       ///< by task: ps for each ps that it takes longer alone
  std::vector<double> delay;      ///< by task: ps for each ps between its release and its start
  std::vector<double> sms;        ///< by task: ps for e times as many SMs wanted by an elastic one
  std::vector<double> disturbed;  ///< by task: ps for a disturbed speed e times as high
  std::vector<double> usage;      ///< by task and usage, as the graph has them: ps for a rate e times as high
  std::vector<double> capacity;   ///< by resource: ps for e times as much of it
};

/// `history`: of the timeline. `since`: 0, or the start of a task.
[[nodiscard]] Gradient span_gradient(const TaskGraph& graph, const Timeline& timeline, const History& history,
                                     Time since = Time::zero());

}  // namespace moeline
