#include "schedules/schedule_kinds.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/names.hpp"
#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

const std::vector<ScheduleKind>& schedule_kinds() {
  static const std::vector<ScheduleKind> kKinds = [] {
    std::vector<ScheduleKind> kinds = {
        {"sequential",
         "no overlap, one phase after the other: the baseline of every comparison",
         {"train", "prefill", "decode"}},
        {"prefill-two-batch", "two micro-batches, each of which hides the other's all-to-all", {"prefill"}},
        {"decode-two-batch", "two micro-batches, each of which hides the other's low-latency all-to-all", {"decode"}},
        {"dualpipe-chunk", "one forward chunk overlapped with one backward chunk, as in DualPipe", {"train"}}};
    for (const PipelineSchedule& each : pipeline_schedules()) kinds.push_back({each.name, each.about, {"train"}});
    return kinds;
  }();
  return kKinds;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const ScheduleKind& kind : schedule_kinds()) names.push_back(kind.name);
    return names;
  }();
  return kNames;
}

const ScheduleKind& schedule_named(const std::string& name) {
  const std::vector<ScheduleKind>& kinds = schedule_kinds();
  const auto known = known_name(name, schedule_names());
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const ScheduleKind& k) { return k.name == known; });
  if (found == kinds.end()) throw UnknownName(unknown_name("schedule", name, schedule_names()));
  return *found;
}

}  // namespace moeline
