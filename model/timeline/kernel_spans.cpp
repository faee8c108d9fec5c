#include "timeline/kernel_spans.hpp"

#include <algorithm>
#include <cmath>

namespace moeline {
namespace {

KernelClass class_named(const std::string& name) {
  const std::vector<std::string>& names = kernel_class_names();
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? KernelClass::unclassified : static_cast<KernelClass>(found - names.begin());
}

// Communication kernels that hold SMs, in order of start, for asking what runs beside a kernel.
class HeldSms {
 public:
  HeldSms(const Trace& trace, const Interpretation& meaning) : trace_(trace), meaning_(meaning) {
    for (std::uint32_t i = 0; i < trace.gpu_events.size(); ++i) {
      const GpuEvent& event = trace.gpu_events[i];
      if (!is_communication(meaning.classes[i]) || event.blocks == 0 || event.blocks > trace.sms) continue;
      events_.push_back(i);
      longest_ns_ = std::max(longest_ns_, event.end_ns - event.start_ns);
    }
  }

  [[nodiscard]] std::int64_t lost_ns(std::uint32_t kernel) const {
    const GpuEvent& event = trace_.gpu_events[kernel];
    const KernelClass c = meaning_.classes[kernel];
    if (is_communication(c) || c == KernelClass::copy || event.blocks <= trace_.sms || trace_.sms == 0) return 0;
    const auto first = std::partition_point(events_.begin(), events_.end(), [&](std::uint32_t i) {
      return trace_.gpu_events[i].start_ns < event.start_ns - longest_ns_;
    });
    double lost = 0;
    for (auto it = first; it != events_.end() && trace_.gpu_events[*it].start_ns < event.end_ns; ++it) {
      const GpuEvent& other = trace_.gpu_events[*it];
      const bool spins = meaning_.classes[*it] == KernelClass::barrier;
      if (other.gpu != event.gpu || (spins && c != KernelClass::attention)) continue;
      const std::int64_t together = std::min(event.end_ns, other.end_ns) - std::max(event.start_ns, other.start_ns);
      if (together > 0) lost += static_cast<double>(together) * other.blocks / trace_.sms;
    }
    return std::llround(lost);
  }

 private:
  const Trace& trace_;
  const Interpretation& meaning_;
  std::vector<std::uint32_t> events_;
  std::int64_t longest_ns_ = 0;
};

}  // namespace

std::vector<KernelSpan> kernel_spans(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<KernelSpan> spans;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Label& label = graph.label(task);
    const TaskClass& task_class = graph.classes()[label.task_class];
    if (task_class.role == Role::host) continue;
    const Phase& phase = graph.phases()[label.phase];
    const Span& span = timeline.spans[task];
    const Stream& stream = graph.streams()[label.stream];
    spans.push_back({graph.task_name(task),
                     class_named(task_class.name),
                     phase.name,
                     {phase.layer, phase.micro_batch},
                     stream.rank,
                     stream.id,
                     span.start,
                     span.end,
                     std::max(Time::zero(), span.end - span.start - graph.task(task).solo)});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const KernelSpan& a, const KernelSpan& b) { return a.start < b.start; });
  return spans;
}

std::vector<KernelSpan> kernel_spans(const Trace& trace, const Interpretation& meaning) {
  const HeldSms held(trace, meaning);
  std::vector<KernelSpan> spans;
  for (std::uint32_t i = 0; i < trace.gpu_events.size(); ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    KernelSpan span{trace.name(event),
                    meaning.classes[i],
                    "",
                    {},
                    trace.rank(event),
                    event.stream,
                    std::chrono::nanoseconds(event.start_ns),
                    std::chrono::nanoseconds(event.end_ns),
                    std::chrono::nanoseconds(held.lost_ns(i))};
    if (const std::int32_t phase = meaning.places[i].phase; phase != kNoPhase) {
      span.phase = meaning.phases[static_cast<std::size_t>(phase)].name;
      span.place = meaning.phases[static_cast<std::size_t>(phase)].place;
    }
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace moeline
