#include "measured/hta.hpp"

#include <algorithm>
#include <set>

namespace moeline {
namespace {

struct ProfilerSteps {
  std::size_t count = 0;
  std::int64_t last_start_ns = 0;
};

ProfilerSteps profiler_steps_of(const Trace& trace) {
  std::set<std::string> names;
  std::int64_t last_start_ns = 0;
  for (const Annotation& annotation : trace.annotations) {
    if (!annotation.name.starts_with("ProfilerStep")) continue;
    names.insert(annotation.name);
    last_start_ns = std::max(last_start_ns, annotation.start_ns);
  }
  return {names.size(), last_start_ns};
}

Work hta_work_of(const Trace& trace, const GpuEvent& event) {
  if (event.kind != GpuEventKind::kernel) return Work::neither;
  const std::string& name = trace.name(event);
  const bool communicates = name.starts_with("nccl") || name.find("ncclKernel") != std::string::npos;
  return communicates ? Work::communication : Work::compute;
}

// Where HTA leaves the event out, the count of its reason.
std::size_t* left_out(const Trace& trace, const GpuEvent& event, const ProfilerSteps& steps, HtaBreakdown& hta) {
  if (steps.count < 2 || trace.is_part) return nullptr;
  if (event.call < 0) return &hta.without_launch;
  return trace.launched_ns(event) >= steps.last_start_ns ? &hta.in_last_step : nullptr;
}

}  // namespace

HtaBreakdown hta_breakdown(const Trace& trace, const std::vector<std::uint32_t>& events) {
  const ProfilerSteps steps = profiler_steps_of(trace);
  HtaBreakdown hta;
  hta.profiler_steps = steps.count;
  BusyTimes busy;
  std::vector<std::uint32_t> counted;
  for (const std::uint32_t i : events) {
    const GpuEvent& event = trace.gpu_events[i];
    if (std::size_t* reason = left_out(trace, event, steps, hta); reason != nullptr) {
      ++*reason;
      continue;
    }
    counted.push_back(i);
    busy.add(interval_of(event), hta_work_of(trace, event));
  }
  hta.events = counted.size();
  if (counted.empty()) return hta;
  const Interval span = limits_of(trace, counted);
  busy.unite_all();
  hta.times = busy.breakdown(span.end - span.start);
  return hta;
}

}  // namespace moeline
