#include "measured/analysis.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

namespace moeline {
namespace {

LayerWindow window_of(std::uint32_t layer, const Interval& limits, const BusyTimes& busy) {
  LayerWindow w;
  w.layer = layer;
  w.start = limits.start;
  w.end = limits.end;
  w.times = busy.inside(limits).breakdown(limits.end - limits.start);
  return w;
}

Interval interval_of(const Stretch& stretch) { return {time_of(stretch.start_ns), time_of(stretch.end_ns)}; }

}  // namespace

std::vector<LayerWindow> layers_of_phases(const std::vector<PhaseTimes>& phases, const BusyTimes& busy) {
  struct Layer {
    Interval computes{Time::max(), Time::min()};
    Time end = Time::min(), barrier{}, transfer{};
  };
  std::map<std::uint32_t, Layer> by_number;
  for (const PhaseTimes& phase : phases) {
    Layer& layer = by_number[phase.layer];
    layer.barrier += phase.barrier;
    layer.transfer += phase.transfer;
    layer.end = std::max(layer.end, phase.end);
    if (phase.is_communication()) continue;
    layer.computes.start = std::min(layer.computes.start, phase.start);
    layer.computes.end = std::max(layer.computes.end, phase.end);
  }
  const auto never_computes = [](const auto& entry) { return entry.second.computes.end < entry.second.computes.start; };
  std::erase_if(by_number, never_computes);
  std::vector<LayerWindow> layers;
  for (auto each = by_number.begin(); each != by_number.end(); ++each) {
    const auto& [number, layer] = *each;
    const auto next = std::next(each);
    const Time until = next != by_number.end() ? std::min(layer.end, next->second.computes.start) : layer.end;
    layers.push_back(window_of(number, {layer.computes.start, std::max(layer.computes.end, until)}, busy));
    layers.back().barrier = layer.barrier;
    layers.back().transfer = layer.transfer;
  }
  return layers;
}

std::vector<LayerWindow> repeated_layers(const Trace& trace, const Interpretation& meaning,
                                         const std::vector<std::uint32_t>& events, const BusyTimes& busy) {
  std::vector<LayerWindow> layers;
  for (const Stretch& stretch : repeated_layers(trace, meaning, events)) {
    layers.push_back(window_of(static_cast<std::uint32_t>(layers.size()), interval_of(stretch), busy));
  }
  return layers;
}

std::vector<StepUse> step_uses(const Trace& trace, const std::vector<StepWindow>& steps, const BusyTimes& busy) {
  std::vector<StepUse> uses;
  for (const StepWindow& step : steps) {
    const Interval limits = interval_of(step.time);
    const Breakdown times = busy.inside(limits).breakdown(limits.end - limits.start);
    uses.push_back({trace.steps[step.step], limits.start, limits.end, times, step.layers.size()});
  }
  return uses;
}

std::vector<LayerWindow> layers_of_steps(const std::vector<StepWindow>& steps, const BusyTimes& busy) {
  std::vector<LayerWindow> layers;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (std::size_t layer = 0; layer < steps[step].layers.size(); ++layer) {
      const Interval limits = interval_of(steps[step].layers[layer]);
      layers.push_back(window_of(static_cast<std::uint32_t>(layer), limits, busy));
      layers.back().step = static_cast<std::int64_t>(step);
    }
  }
  return layers;
}

void add_communication(const Trace& trace, const Interpretation& meaning, const std::vector<std::uint32_t>& events,
                       std::vector<LayerWindow>& layers) {
  auto layer = layers.begin();
  for (const std::uint32_t i : events) {
    const Time start = time_of(trace.gpu_events[i].start_ns);
    while (layer != layers.end() && layer->end <= start) ++layer;
    if (layer == layers.end()) return;
    const KernelClass c = meaning.classes[i];
    if (layer->start > start || !is_communication(c)) continue;
    (c == KernelClass::barrier ? layer->barrier : layer->transfer) += length_of(trace.gpu_events[i]);
  }
}

namespace {

using Events = std::vector<std::uint32_t>;

class OneRank {
 public:
  OneRank(const Measured& m, const Release& release, std::uint32_t rank, Events events, std::vector<PhaseTimes> phases,
          std::vector<StepWindow> steps)
      : m_(m), release_(release), events_(std::move(events)), steps_(std::move(steps)) {
    result_.rank = rank;
    result_.phases = std::move(phases);
  }

  RankAnalysis analyze() {
    whole_rank();
    streams();
    classes();
    gaps();
    transfers();
    layers();
    return std::move(result_);
  }

 private:
  [[nodiscard]] const GpuEvent& event(std::uint32_t i) const { return m_.trace.gpu_events[i]; }
  [[nodiscard]] KernelClass class_of(std::uint32_t i) const { return m_.meaning.classes[i]; }

  void whole_rank() {
    limits_ = limits_of(m_.trace, events_);
    for (const std::uint32_t i : events_) {
      all_.add(interval_of(event(i)), work_of(class_of(i)));
      if (event(i).kind != GpuEventKind::kernel) continue;
      ++result_.kernels;
      if (event(i).call < 0) ++result_.kernels_without_launch;
    }
    all_.unite_all();
    result_.times = all_.breakdown(span());
    result_.hta = hta_breakdown(m_.trace, events_);
  }
  [[nodiscard]] Time span() const { return limits_.end - limits_.start; }

  void streams() {
    std::map<std::uint32_t, BusyTimes> by_stream;
    std::map<std::uint32_t, std::size_t> count;
    for (const std::uint32_t i : events_) {
      by_stream[event(i).stream].add(interval_of(event(i)), work_of(class_of(i)));
      ++count[event(i).stream];
    }
    for (auto& [stream, busy] : by_stream) {
      busy.unite_all();
      result_.streams.push_back({stream, count[stream], busy.breakdown(span(), all_.compute)});
    }
  }

  void classes() {
    std::array<ClassUse, kKernelClasses> uses;
    std::array<std::vector<Interval>, kKernelClasses> intervals;
    for (const std::uint32_t i : events_) {
      const auto c = static_cast<std::size_t>(class_of(i));
      ClassUse& use = uses[c];
      use.kernel_class = class_of(i);
      ++use.count;
      use.sum += length_of(event(i));
      intervals[c].push_back(interval_of(event(i)));
      if (event(i).flops > 0) {
        use.flops += event(i).flops;
        use.flops_time += length_of(event(i));
      }
      if (const double bytes = bytes_at_own_rate(event(i)); bytes > 0) {
        use.bytes += bytes;
        use.bytes_time += length_of(event(i));
      }
    }
    for (std::size_t c = 0; c < uses.size(); ++c) {
      if (uses[c].count == 0) continue;
      uses[c].busy = covered_by(std::move(intervals[c]));
      result_.classes.push_back(uses[c]);
    }
    std::stable_sort(result_.classes.begin(), result_.classes.end(),
                     [](const ClassUse& a, const ClassUse& b) { return a.sum > b.sum; });
    result_.copies = copies_of(m_.trace, events_);
  }

  // What a copy moves over a link says nothing of the memory's rate.
  [[nodiscard]] double bytes_at_own_rate(const GpuEvent& event) const {
    if (event.kind == GpuEventKind::kernel) return static_cast<double>(event.bytes);
    const CopyPath path = copy_path(event.kind, m_.trace.name(event));
    return passes_through_memory(path) > 0 ? moved_bytes(path, event) : 0;
  }

  // Streams that carry compute: not those where a cast stands in front of each transfer.
  [[nodiscard]] std::set<std::uint32_t> compute_streams() const {
    constexpr double kNoteworthy = 0.05;
    std::set<std::uint32_t> found;
    for (const StreamBreakdown& s : result_.streams) {
      if (ratio(s.times.compute, result_.times.compute) >= kNoteworthy) found.insert(s.stream);
    }
    return found;
  }

  void gaps() {
    const std::set<std::uint32_t> computing = compute_streams();
    result_.compute_streams.assign(computing.begin(), computing.end());
    std::vector<Interval> busy;
    for (const std::uint32_t i : events_) {
      if (computing.contains(event(i).stream)) busy.push_back(interval_of(event(i)));
    }
    result_.compute_streams_busy = covered_by(std::move(busy));
    result_.gaps = gaps_of(m_, release_, events_, computing, limits_);
    std::stable_sort(result_.gaps.begin(), result_.gaps.end(),
                     [](const Gap& a, const Gap& b) { return a.length > b.length; });
  }

  void transfers() {
    std::map<PhaseKey, double> bytes;
    for (const std::uint32_t i : events_) {
      const std::int32_t phase = m_.meaning.places[i].phase;
      if (phase == kNoPhase || work_of(class_of(i)) != Work::communication) continue;
      const TracePhase& p = m_.meaning.phases[static_cast<std::size_t>(phase)];
      bytes[{p.place.layer, p.name, p.place.micro_batch}] += static_cast<double>(event(i).bytes);
    }
    for (const PhaseTimes& phase : result_.phases) {
      if (!phase.is_communication()) continue;
      const Time other = std::max(Time::zero(), phase.busy - phase.barrier - phase.transfer);
      result_.transfers.push_back({phase, other, bytes[key_of(phase)]});
    }
  }

  // Phases divide a run into layers where they hold most of it; else what repeats does.
  void layers() {
    result_.steps = step_uses(m_.trace, steps_, all_);
    result_.step_kinds = step_kinds(m_.trace, steps_);
    if (!holds_most(m_.meaning)) {
      result_.layers = result_.steps.empty() ? repeated_layers(m_.trace, m_.meaning, on_main_stream(), all_)
                                             : layers_of_steps(steps_, all_);
      add_communication(m_.trace, m_.meaning, events_, result_.layers);
      result_.layers_by_repetition = !result_.layers.empty();
    }
    if (result_.layers.empty()) result_.layers = layers_of_phases(result_.phases, all_);
  }

  [[nodiscard]] Events on_main_stream() const {
    const auto busiest = std::max_element(
        result_.streams.begin(), result_.streams.end(),
        [](const StreamBreakdown& a, const StreamBreakdown& b) { return a.times.compute < b.times.compute; });
    Events events;
    for (const std::uint32_t i : events_) {
      if (event(i).stream == busiest->stream) events.push_back(i);
    }
    return events;
  }

  const Measured& m_;
  const Release& release_;
  Events events_;
  std::vector<StepWindow> steps_;
  Interval limits_;
  BusyTimes all_;
  RankAnalysis result_;
};

std::vector<UnclassifiedKernel> unclassified(const Measured& m) {
  std::map<std::uint32_t, UnclassifiedKernel> by_name;
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const bool unknown =
        m.meaning.classes[i] == KernelClass::unclassified && !m.trace.is_whole_phase(m.trace.gpu_events[i]);
    if (!unknown) continue;
    UnclassifiedKernel& kernel = by_name[m.trace.gpu_events[i].name];
    kernel.name = m.trace.name(m.trace.gpu_events[i]);
    ++kernel.count;
    kernel.sum += length_of(m.trace.gpu_events[i]);
  }
  std::vector<UnclassifiedKernel> list;
  for (auto& [name, kernel] : by_name) list.push_back(std::move(kernel));
  std::stable_sort(list.begin(), list.end(),
                   [](const UnclassifiedKernel& a, const UnclassifiedKernel& b) { return a.sum > b.sum; });
  return list;
}

}  // namespace

Analysis analyze(const Measured& m) {
  Analysis analysis;
  const Release release = release_times(m);
  std::vector<Events> events(m.trace.gpus.size());
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) events[m.trace.gpu_events[i].gpu].push_back(i);
  std::map<std::uint32_t, std::vector<PhaseTimes>> phases;  // by rank: no two GPUs have the same
  for (PhaseTimes& phase : phase_times(m.trace, m.meaning)) phases[phase.rank].push_back(std::move(phase));
  std::vector<std::vector<StepWindow>> steps(m.trace.gpus.size());
  for (StepWindow& step : step_windows(m.trace, m.meaning)) steps[step.gpu].push_back(std::move(step));
  for (std::size_t gpu = 0; gpu < m.trace.gpus.size(); ++gpu) {
    if (events[gpu].empty()) continue;
    const std::uint32_t rank = m.trace.gpus[gpu].rank;
    OneRank one(m, release, rank, std::move(events[gpu]), std::move(phases[rank]), std::move(steps[gpu]));
    analysis.ranks.push_back(one.analyze());
  }
  analysis.gpu_events = m.trace.gpu_events.size();
  analysis.attributed =
      static_cast<std::size_t>(std::count_if(m.meaning.places.begin(), m.meaning.places.end(),
                                             [](const EventPlace& place) { return place.phase != kNoPhase; }));
  analysis.unclassified = unclassified(m);
  return analysis;
}

GapSum sum_of(const RankAnalysis& rank, GapCause cause) {
  GapSum sum;
  for (const Gap& gap : rank.gaps) {
    if (gap.cause != cause) continue;
    ++sum.count;
    sum.sum += gap.length;
  }
  return sum;
}

}  // namespace moeline
