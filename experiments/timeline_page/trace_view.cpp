#include "experiments/timeline_page/trace_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "experiments/timeline_page/page.hpp"
#include "experiments/timeline_page/resource_use.hpp"
#include "measured/breakdown.hpp"
#include "timeline/intervals.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

// Mangled templates run to thousands of characters.
constexpr std::size_t kLongestName = 160;

using StreamOfRank = std::pair<std::uint32_t, std::uint32_t>;

std::map<StreamOfRank, std::uint32_t> add_lanes(const std::vector<KernelSpan>& kernels, std::size_t count,
                                                const std::map<std::uint32_t, std::string>& stream_names,
                                                TimelineView& view) {
  std::map<StreamOfRank, std::uint32_t> lanes;
  for (std::size_t i = 0; i < count; ++i) lanes.try_emplace({kernels[i].rank, kernels[i].stream}, 0);
  for (auto& [stream, lane] : lanes) {
    lane = static_cast<std::uint32_t>(view.lanes.size());
    const auto named = stream_names.find(stream.second);
    view.lanes.push_back(
        {stream.first, named == stream_names.end() ? fmt::format("stream {}", stream.second) : named->second});
    if (view.ranks.empty() || view.ranks.back() != stream.first) view.ranks.push_back(stream.first);
  }
  return lanes;
}

Bar bar_of(const KernelSpan& kernel, ViewDraft& draft) {
  const std::string name = short_kernel_name(kernel.name);
  Bar bar{.start = kernel.start, .end = kernel.end};
  bar.kind =
      draft.kind({name, name_of(kernel.kernel_class), name == kernel.name ? "" : one_line(kernel.name, kLongestName), 0,
                  is_communication(kernel.kernel_class)});
  if (!kernel.phase.empty()) {
    bar.phase = draft.phase({short_phase_name(kernel.phase), kernel.place.layer, kernel.place.micro_batch, ""});
  }
  bar.alone = std::max(Time::zero(), kernel.end - kernel.start - kernel.contention);
  return bar;
}

}  // namespace

std::vector<std::size_t> add_spans(const std::vector<KernelSpan>& kernels, std::size_t most,
                                   const std::map<std::uint32_t, std::string>& stream_names, ViewDraft& draft) {
  const std::size_t count = std::min(kernels.size(), most);
  const auto lanes = add_lanes(kernels, count, stream_names, draft.view);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  const auto lane_of = [&](std::size_t i) { return lanes.at({kernels[i].rank, kernels[i].stream}); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return kernels[a].start != kernels[b].start ? kernels[a].start < kernels[b].start : lane_of(a) < lane_of(b);
  });
  for (const std::size_t i : order) {
    Bar bar = bar_of(kernels[i], draft);
    bar.lane = lane_of(i);
    draft.view.bars.push_back(bar);
    draft.view.end = std::max(draft.view.end, bar.end);
  }
  if (count < kernels.size()) {
    draft.view.left_out.push_back(fmt::format(
        "The first {} of {} kernels are shown; of a trace --from, --to and --steps choose.", count, kernels.size()));
  }
  return order;
}

namespace {

constexpr std::int64_t kNoBar = -1;

class TraceView {
 public:
  TraceView(const Measured& measured, ViewDraft& draft)
      : measured_(measured), events_(measured.trace.gpu_events), draft_(draft), bar_of_(events_.size(), kNoBar) {
    event_of_ = add_spans(kernel_spans(measured.trace, measured.meaning), kMostBars, {}, draft);
    for (std::size_t bar = 0; bar < event_of_.size(); ++bar) bar_of_[event_of_[bar]] = static_cast<std::int64_t>(bar);
  }

  void add_reasons() {
    const Release release = release_times(measured_);
    for (std::size_t bar = 0; bar < event_of_.size(); ++bar) add_reason(release, event_of_[bar], draft_.view.bars[bar]);
    for (const Unexplained& wait : unexplained_waits(measured_, release)) {
      if (!wait.for_sms || bar_of_[wait.event] == kNoBar) continue;
      Bar& bar = draft_.view.bars[static_cast<std::size_t>(bar_of_[wait.event])];
      bar.sms_wait = std::min(bar.delay, time_of(wait.wait_ns));
      bar.delay -= bar.sms_wait;
    }
  }

  // At measured times: the replay's differ by what kernels waited for SMs by chance.
  void add_path(const ReplayGraph& replay, const Explanation& explanation) {
    for (const PathStep& step : explanation.path) {
      const std::int64_t event = replay.event_of[step.task];
      const std::int64_t bar = event < 0 ? kNoBar : bar_of_[static_cast<std::size_t>(event)];
      if (bar == kNoBar) continue;
      const Bar& drawn = draft_.view.bars[static_cast<std::size_t>(bar)];
      const bool runs = step.reason == PathReason::running || step.reason == PathReason::slowed;
      const Time start = runs ? drawn.start : std::max(Time::zero(), drawn.start - (step.end - step.start));
      draft_.view.path.push_back({static_cast<std::uint32_t>(bar), static_cast<std::uint8_t>(step.reason), start,
                                  runs ? drawn.end : drawn.start});
    }
  }

  // What the trace does say: whether kernels of either sort run.
  void add_uses() {
    for (std::size_t gpu = 0; gpu < measured_.trace.gpus.size(); ++gpu) {
      BusyTimes busy;
      for (const std::size_t event : event_of_) {
        if (events_[event].gpu == gpu) busy.add(interval_of(events_[event]), work_of(measured_.meaning.classes[event]));
      }
      busy.unite_all();
      const std::uint32_t rank = measured_.trace.gpus[gpu].rank;
      add_use(rank, "computes", busy.compute);
      add_use(rank, "communicates", busy.communication);
      add_use(rank, "exposed communication", subtract(busy.communication, busy.compute));
    }
  }

 private:
  void add_use(std::uint32_t rank, const char* name, const std::vector<Interval>& intervals) {
    if (intervals.empty()) return;
    ResourceUse use{.rank = rank, .name = name, .capacity = 1, .taken = {}};
    for (const Interval& interval : intervals) {
      use.taken.emplace_back(interval.start, 1);
      use.taken.emplace_back(interval.end, 0);
    }
    constexpr std::size_t kMostSteps = 8000;
    thin(use, draft_.view.end, kMostSteps);
    draft_.view.uses.push_back(std::move(use));
  }

  void add_reason(const Release& release, std::size_t event, Bar& bar) {
    const std::int64_t binding = release.binding[event];
    if (binding < 0) return;
    const Dependency& edge = measured_.dependencies[static_cast<std::size_t>(binding)];
    bar.delay = std::max(Time::zero(), bar.start - time_of(release.event_ns[event]));
    if (!edge.before.is_call && bar_of_[edge.before.index] != kNoBar) {
      bar.released = {edge.order != Order::end_to_start ? BarEvent::Of::start : BarEvent::Of::end,
                      static_cast<std::uint32_t>(bar_of_[edge.before.index])};
    } else {
      const char* what = edge.before.is_call ? "its launch by the host" : "a kernel before those that are shown";
      bar.released = {BarEvent::Of::elsewhere, draft_.text(what)};
    }
  }

  const Measured& measured_;
  const std::vector<GpuEvent>& events_;
  ViewDraft& draft_;
  std::vector<std::size_t> event_of_;  // by bar
  std::vector<std::int64_t> bar_of_;   // by event
};

}  // namespace

TimelineView view_of(const Measured& measured, const ReplayGraph& replay, const Explanation& explanation) {
  ViewDraft draft("");
  draft.view.measured = true;
  TraceView view(measured, draft);
  view.add_reasons();
  view.add_path(replay, explanation);
  view.add_uses();
  return std::move(draft.view);
}

}  // namespace moeline
