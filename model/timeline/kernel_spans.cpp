#include "timeline/kernel_spans.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

namespace moeline {
namespace {

// SMs that communication kernels hold, by GPU, as steps over time with their integral.
class HeldSms {
 public:
  HeldSms(const Trace& trace, const Interpretation& meaning) : trace_(trace), meaning_(meaning) {
    std::map<Holders, std::vector<Step>> changes;
    for (std::uint32_t i = 0; i < trace.gpu_events.size(); ++i) {
      const GpuEvent& event = trace.gpu_events[i];
      if (!is_communication(meaning.classes[i]) || event.blocks == 0 || event.blocks > trace.sms) continue;
      std::vector<Step>& of_gpu = changes[{event.gpu, meaning.classes[i] == KernelClass::barrier}];
      const double blocks = event.blocks;
      of_gpu.push_back({event.start_ns, blocks, 0});
      of_gpu.push_back({event.end_ns, -blocks, 0});
    }
    for (auto& [holders, steps] : changes) steps_[holders] = integrated(std::move(steps));
  }

  [[nodiscard]] std::int64_t lost_ns(std::uint32_t kernel) const {
    const GpuEvent& event = trace_.gpu_events[kernel];
    const KernelClass c = meaning_.classes[kernel];
    if (is_communication(c) || c == KernelClass::copy || event.blocks <= trace_.sms || trace_.sms == 0) return 0;
    double held = held_sm_ns({event.gpu, false}, event);
    if (c == KernelClass::attention) held += held_sm_ns({event.gpu, true}, event);  // barriers spin
    return std::llround(held / trace_.sms);
  }

 private:
  using Holders = std::pair<std::uint16_t, bool>;  // GPU, and whether they are its barriers

  struct Step {
    std::int64_t at_ns = 0;
    double held = 0;    // SMs, from at_ns on
    double before = 0;  // SM x ns until at_ns; exact below 2^53, which is five days on 20 SMs
  };

  // From changes of `held` to steps.
  static std::vector<Step> integrated(std::vector<Step> steps) {
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.at_ns < b.at_ns; });
    for (std::size_t i = 1; i < steps.size(); ++i) {
      const Step& last = steps[i - 1];
      steps[i].before = last.before + last.held * static_cast<double>(steps[i].at_ns - last.at_ns);
      steps[i].held += last.held;
    }
    return steps;
  }

  // SM x ns held while the event ran.
  [[nodiscard]] double held_sm_ns(const Holders& holders, const GpuEvent& event) const {
    const auto found = steps_.find(holders);
    if (found == steps_.end()) return 0;
    const std::vector<Step>& steps = found->second;
    const auto until = [&](std::int64_t ns) {
      const auto next = std::partition_point(steps.begin(), steps.end(), [&](const Step& s) { return s.at_ns <= ns; });
      if (next == steps.begin()) return 0.0;
      const Step& last = *std::prev(next);
      return last.before + last.held * static_cast<double>(ns - last.at_ns);
    };
    return until(event.end_ns) - until(event.start_ns);
  }

  const Trace& trace_;
  const Interpretation& meaning_;
  std::map<Holders, std::vector<Step>> steps_;
};

}  // namespace

std::vector<KernelSpan> kernel_spans(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank) {
  std::vector<KernelSpan> spans;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Label& label = graph.label(task);
    const TaskClass& task_class = graph.task_class(task);
    if (task_class.role == Role::host) continue;
    const Phase& phase = graph.phases()[label.phase];
    const Span& span = timeline.spans[task];
    const Stream& stream = graph.streams()[label.stream];
    if (stream.rank != rank) continue;
    spans.push_back({graph.task_name(task),
                     class_named(task_class.name).value_or(KernelClass::unclassified),
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
