#include "measured/analysis.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "timeline/repetition.hpp"

namespace moeline {
namespace {

using Events = std::vector<std::uint32_t>;

class OneRank {
 public:
  OneRank(const Measured& m, const Release& release, std::uint32_t rank, Events events, std::vector<PhaseTimes> phases)
      : m_(m), release_(release), events_(std::move(events)) {
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
      if (event(i).bytes > 0) {
        use.bytes += static_cast<double>(event(i).bytes);
        use.bytes_time += length_of(event(i));
      }
    }
    for (std::size_t c = 0; c < uses.size(); ++c) {
      if (uses[c].count == 0) continue;
      uses[c].busy = total(unite(std::move(intervals[c])));
      result_.classes.push_back(uses[c]);
    }
    std::stable_sort(result_.classes.begin(), result_.classes.end(),
                     [](const ClassUse& a, const ClassUse& b) { return a.sum > b.sum; });
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
    result_.compute_streams_busy = total(unite(std::move(busy)));
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

  void layers() {
    if (result_.phases.empty()) return layers_by_repetition();
    struct Layer {
      Interval limits{Time::max(), Time::min()};
      Time barrier{}, transfer{};
    };
    std::map<std::uint32_t, Layer> by_layer;
    for (const PhaseTimes& phase : result_.phases) {
      Layer& layer = by_layer[phase.layer];
      layer.barrier += phase.barrier;
      layer.transfer += phase.transfer;
      if (phase.is_communication()) continue;
      layer.limits.start = std::min(layer.limits.start, phase.start);
      layer.limits.end = std::max(layer.limits.end, phase.end);
    }
    for (const auto& [number, layer] : by_layer) {
      if (layer.limits.end < layer.limits.start) continue;  // nothing computes in it
      result_.layers.push_back(window(number, layer.limits));
      result_.layers.back().barrier = layer.barrier;
      result_.layers.back().transfer = layer.transfer;
    }
  }

  void layers_by_repetition() {
    const auto busiest = std::max_element(
        result_.streams.begin(), result_.streams.end(),
        [](const StreamBreakdown& a, const StreamBreakdown& b) { return a.times.compute < b.times.compute; });
    if (busiest == result_.streams.end()) return;
    Events events;
    std::vector<std::uint32_t> names;
    for (const std::uint32_t i : events_) {
      if (event(i).stream != busiest->stream) continue;
      events.push_back(i);
      names.push_back(event(i).name);
    }
    const std::vector<std::size_t> starts = repetitions(names);
    result_.layers_by_repetition = !starts.empty();
    for (std::size_t layer = 0; layer + 1 < starts.size(); ++layer) {
      const std::size_t next = starts[layer + 1];
      const Time start = time_of(event(events[starts[layer]]).start_ns);
      const bool ends_trace = next >= events.size();
      const Time end = ends_trace ? time_of(event(events.back()).end_ns) : time_of(event(events[next]).start_ns);
      result_.layers.push_back(window(static_cast<std::uint32_t>(layer), {start, end}));
    }
    add_communication_by_start();
  }

  // Barriers and transfers belong to the repetition in which they start; both are in order of time.
  void add_communication_by_start() {
    auto layer = result_.layers.begin();
    for (const std::uint32_t i : events_) {
      const Time start = time_of(event(i).start_ns);
      while (layer != result_.layers.end() && layer->end <= start) ++layer;
      if (layer == result_.layers.end()) return;
      if (layer->start > start || work_of(class_of(i)) != Work::communication) continue;
      (class_of(i) == KernelClass::barrier ? layer->barrier : layer->transfer) += length_of(event(i));
    }
  }

  [[nodiscard]] LayerWindow window(std::uint32_t layer, const Interval& limits) const {
    LayerWindow w;
    w.layer = layer;
    w.start = limits.start;
    w.end = limits.end;
    w.times = all_.inside(limits).breakdown(limits.end - limits.start);
    return w;
  }

  const Measured& m_;
  const Release& release_;
  Events events_;
  Interval limits_;
  BusyTimes all_;
  RankAnalysis result_;
};

std::vector<UnclassifiedKernel> unclassified(const Measured& m) {
  std::map<std::uint32_t, UnclassifiedKernel> by_name;
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    if (m.meaning.classes[i] != KernelClass::unclassified) continue;
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
  for (std::size_t gpu = 0; gpu < m.trace.gpus.size(); ++gpu) {
    const std::uint32_t rank = m.trace.gpus[gpu].rank;
    analysis.ranks.push_back(OneRank(m, release, rank, std::move(events[gpu]), std::move(phases[rank])).analyze());
  }
  analysis.gpu_events = m.trace.gpu_events.size();
  analysis.attributed =
      static_cast<std::size_t>(std::count_if(m.meaning.places.begin(), m.meaning.places.end(),
                                             [](const EventPlace& place) { return place.phase != kNoPhase; }));
  analysis.unclassified = unclassified(m);
  return analysis;
}

}  // namespace moeline
