#include "experiments/explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace moeline {
namespace {

// What the span holds of the path: before its first kernel there are launches.
std::vector<PathStep> within(std::vector<PathStep> path, Time start) {
  std::erase_if(path, [&](const PathStep& step) { return step.end <= start; });
  if (!path.empty()) path.front().start = std::max(path.front().start, start);
  return path;
}

// Of several ranks' resources of one name. The longest chain counts from the first kernel on, as the span does.
std::vector<Bound> greatest_by_name(std::vector<Bound> bounds, Time start) {
  bounds.front().time -= start;
  std::vector<Bound> kept;
  for (Bound& bound : bounds) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Bound& b) { return b.what == bound.what; });
    if (same == kept.end()) {
      kept.push_back(std::move(bound));
    } else {
      same->time = std::max(same->time, bound.time);
    }
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Bound& a, const Bound& b) { return a.time > b.time; });
  return kept;
}

// The tasks that stand for ranks that are not simulated.
std::vector<bool> stand_ins_of(const Program& program) {
  std::vector<bool> stand_ins(program.graph.size(), false);
  for (const Meeting& meeting : program.meetings) {
    if (meeting.wait != kNoTask) stand_ins[meeting.wait] = true;
  }
  return stand_ins;
}

Explanation explain(const TaskGraph& graph, const Timeline& timeline, Time span, const std::vector<bool>& stand_ins) {
  const Time start = timeline.makespan - span;
  Explanation e{.start = start, .span = span};
  e.path = within(critical_path(graph, timeline, stand_ins), start);
  e.blame = blame(graph, e.path);
  e.bounds = greatest_by_name(lower_bounds(graph), start);
  return e;
}

}  // namespace

std::string title_of(const Blame& blame) {
  return fmt::format("{}{}{}: {}", blame.task_class, blame.phase.empty() ? "" : " in ", blame.phase,
                     name_of(blame.reason));
}

Explanation explain(const Run& run) {
  return explain(run.program.graph, run.timeline, run.metrics.span, stand_ins_of(run.program));
}

Explanation explain(const ReplayGraph& replay, const Timeline& timeline) {
  return explain(replay.graph, timeline, gpu_span(replay, timeline), {});
}

}  // namespace moeline
