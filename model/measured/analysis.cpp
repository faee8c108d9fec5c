#include "measured/analysis.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "timeline/repetition.hpp"
#include "timeline/intervals.hpp"

namespace moeline {
namespace {

enum class Work : std::uint8_t { compute, communication, neither };

Work work_of(KernelClass c) {
  if (c == KernelClass::copy) return Work::neither;
  return is_communication(c) ? Work::communication : Work::compute;
}

Time time_of(std::int64_t ns) { return std::chrono::nanoseconds(ns); }
Interval interval_of(const GpuEvent& event) { return {time_of(event.start_ns), time_of(event.end_ns)}; }
Time length_of(const GpuEvent& event) { return time_of(event.end_ns - event.start_ns); }

// Intervals of events by kind of work.
struct Collected {
  std::vector<Interval> compute, communication, any;

  void add(const Interval& interval, Work work) {
    any.push_back(interval);
    if (work == Work::compute) compute.push_back(interval);
    if (work == Work::communication) communication.push_back(interval);
  }
  // `all_compute`: what hides communication; nullptr: its own.
  Breakdown finish(Time span, const std::vector<Interval>* all_compute = nullptr) {
    compute = unite(std::move(compute));
    communication = unite(std::move(communication));
    any = unite(std::move(any));
    Breakdown b;
    b.span = span;
    b.idle = span - total(any);
    b.compute = total(compute);
    b.communication = total(communication);
    b.exposed = b.communication - overlap(communication, all_compute == nullptr ? compute : *all_compute);
    return b;
  }
};

using Events = std::vector<std::uint32_t>;

struct Limits {
  Time start = Time::max(), end = Time::min();
  [[nodiscard]] Time span() const { return end > start ? end - start : Time::zero(); }
};

Limits limits_of(const Trace& trace, const Events& events) {
  Limits limits;
  for (const std::uint32_t i : events) {
    limits.start = std::min(limits.start, time_of(trace.gpu_events[i].start_ns));
    limits.end = std::max(limits.end, time_of(trace.gpu_events[i].end_ns));
  }
  return limits;
}

// The pattern of HTA; what it leaves over counts as compute.
bool is_hta_communication(const Trace& trace, const GpuEvent& event) { return trace.name(event).starts_with("nccl"); }

class OneRank {
 public:
  OneRank(const Measured& m, const Release& release, std::uint32_t rank, Events events, std::vector<PhaseTimes> phases)
      : m_(m), release_(release), events_(std::move(events)) {
    result_.rank = rank;
    result_.phases = std::move(phases);
  }

  RankAnalysis analyze() {
    limits_ = limits_of(m_.trace, events_);
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
    Collected hta;
    for (const std::uint32_t i : events_) {
      const Interval interval = interval_of(event(i));
      all_.add(interval, work_of(class_of(i)));
      const bool copy = event(i).kind != GpuEventKind::kernel;
      const Work work = copy                                       ? Work::neither
                        : is_hta_communication(m_.trace, event(i)) ? Work::communication
                                                                   : Work::compute;
      hta.add(interval, work);
    }
    result_.times = all_.finish(limits_.span());
    result_.hta = hta.finish(limits_.span());
  }

  void streams() {
    std::map<std::uint32_t, Collected> by_stream;
    std::map<std::uint32_t, std::size_t> count;
    for (const std::uint32_t i : events_) {
      by_stream[event(i).stream].add(interval_of(event(i)), work_of(class_of(i)));
      ++count[event(i).stream];
    }
    for (auto& [stream, collected] : by_stream) {
      result_.streams.push_back({stream, count[stream], collected.finish(limits_.span(), &all_.compute)});
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
    Time busy_until = Time::min();
    for (const std::uint32_t i : events_) {  // by start
      if (!computing.contains(event(i).stream)) continue;
      const Time start = time_of(event(i).start_ns);
      if (busy_until != Time::min() && start > busy_until) add_gap(i, start - busy_until);
      busy_until = std::max(busy_until, time_of(event(i).end_ns));
    }
    std::stable_sort(result_.gaps.begin(), result_.gaps.end(),
                     [](const Gap& a, const Gap& b) { return a.length > b.length; });
  }

  void add_gap(std::uint32_t next, Time length) {
    Gap gap{GapCause::between, length, next, -1};
    const std::int64_t binding = release_.binding[next];
    const bool idle_after = event(next).start_ns - release_.event_ns[next] >= kUnexplainedNs;
    const Dependency* edge = binding < 0 ? nullptr : &m_.dependencies[static_cast<std::size_t>(binding)];
    if (edge != nullptr && edge->reason == Reason::launch) {
      gap.cause = host_waited(edge->before.index) ? GapCause::host_wait : GapCause::launch;
    } else if (edge == nullptr || idle_after) {
      gap.cause = GapCause::unexplained;
    } else if (edge->reason != Reason::stream_order) {
      gap.waited_for = edge->before.index;
      gap.cause = is_communication(class_of(edge->before.index)) ? GapCause::communication : GapCause::other_stream;
    }
    result_.gaps.push_back(gap);
  }

  [[nodiscard]] bool host_waited(std::uint32_t call) const {
    const std::int64_t binding = release_.call_binding[call];
    return binding >= 0 && m_.dependencies[static_cast<std::size_t>(binding)].reason == Reason::host_wait;
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
      Limits limits;
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

  // Of the rank's intervals the parts inside; they are united and sorted by now.
  [[nodiscard]] LayerWindow window(std::uint32_t layer, const Limits& limits) const {
    const auto inside = [&](const std::vector<Interval>& intervals) {
      std::vector<Interval> clipped;
      auto it = std::partition_point(intervals.begin(), intervals.end(),
                                     [&](const Interval& i) { return i.end <= limits.start; });
      for (; it != intervals.end() && it->start < limits.end; ++it) {
        clipped.push_back({std::max(it->start, limits.start), std::min(it->end, limits.end)});
      }
      return clipped;
    };
    Collected collected{inside(all_.compute), inside(all_.communication), inside(all_.any)};
    LayerWindow w;
    w.layer = layer;
    w.start = limits.start;
    w.end = limits.end;
    w.times = collected.finish(limits.span());
    return w;
  }

  const Measured& m_;
  const Release& release_;
  Events events_;
  Limits limits_;
  Collected all_;
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

double Breakdown::overlap_fraction() const { return ratio(communication - exposed, communication); }

const std::string& name_of(GapCause cause) {
  static const std::array<std::string, kGapCauses> names = {"launch",       "host_wait",       "communication",
                                                            "other_stream", "between_kernels", "unexplained"};
  return names[static_cast<std::size_t>(cause)];
}

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
