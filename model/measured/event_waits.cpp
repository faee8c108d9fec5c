#include <algorithm>
#include <optional>

#include "measured/edges.hpp"

namespace moeline {
namespace {

constexpr std::int64_t kWorthExplaining = 20'000;  // ns that a kernel stood still without another reason
constexpr std::size_t kPhasesBack = 12;
constexpr std::size_t kEventsBack = 64;

struct Wait {
  const HostCall* call = nullptr;
  std::size_t launched = 0;            ///< position in the process's launch order of the first kernel after it
  std::vector<std::uint32_t> waiters;  ///< who may have waited, in order of launch, one per stream
};

// "The second wait in front of kernel 1 of dispatch(B)": the same in every layer.
using Position = std::pair<Step, int>;

struct Reading {
  std::uint32_t waiter_stream = 0;
  Relative source;
  std::int64_t explained_ns = 0;  // summed over the layers
  Evidence evidence{};
};

// For every kernel, the newest one of each other stream that it is known to follow. Kept where it changes.
class Knowledge {
 public:
  explicit Knowledge(const Launches& launches) : launches_(launches), known_(launches.on_stream.size()) {}

  [[nodiscard]] bool implies(std::uint32_t before, std::uint32_t after) const {
    const Newest* known = at(after);
    if (known == nullptr) return false;
    const auto newest = known->find(launches_.stream[before]);
    return newest != known->end() && newest->second >= before;
  }
  void add(std::uint32_t before, std::uint32_t after) {
    Newest learnt = at(before) == nullptr ? Newest{} : *at(before);
    std::uint32_t& newest = learnt.try_emplace(launches_.stream[before], before).first->second;
    newest = std::max(newest, before);
    auto& own = known_[launches_.stream[after]];
    own.try_emplace(after, at(after) == nullptr ? Newest{} : *at(after));
    for (auto it = own.find(after); it != own.end(); ++it) {
      for (const auto& [stream, event] : learnt) {
        std::uint32_t& known = it->second.try_emplace(stream, event).first->second;
        known = std::max(known, event);
      }
    }
  }

 private:
  using Newest = std::map<std::uint32_t, std::uint32_t>;  // event by stream

  [[nodiscard]] const Newest* at(std::uint32_t event) const {
    const auto& own = known_[launches_.stream[event]];
    const auto later = own.upper_bound(event);
    return later == own.begin() ? nullptr : &std::prev(later)->second;
  }

  const Launches& launches_;
  std::vector<std::map<std::uint32_t, Newest>> known_;  // by stream; events of one start in order
};

// The calls of one process of the host.
class WaitReader {
 public:
  WaitReader(const Launches& launches, std::uint32_t process)
      : l_(launches), process_(process), positions_(launches.on_stream.size()), knowledge_(launches) {
    for (const std::uint32_t i : l_.meaning.order) {
      if (l_.process(i) != process) continue;
      positions_[l_.stream[i]].push_back(order_.size());
      order_.push_back(i);
    }
    for (std::uint32_t stream = 0; stream < positions_.size(); ++stream) {
      if (!positions_[stream].empty()) streams_.push_back(stream);
    }
  }

  std::vector<Dependency> read() {
    const std::vector<Wait> waits = silent_waits();
    std::map<Position, std::vector<const Wait*>> alike;
    std::vector<Position> positions;
    int ordinal = 0;  // of waits in front of one kernel
    for (std::size_t i = 0; i < waits.size(); ++i) {
      ordinal = i > 0 && waits[i - 1].launched == waits[i].launched ? ordinal + 1 : 0;
      positions.emplace_back(step_of(l_.meaning, waits[i].waiters.front()), ordinal);
      alike[positions.back()].push_back(&waits[i]);
    }
    std::map<Position, std::vector<Reading>> readings;
    for (const auto& [position, members] : alike) readings[position] = readings_of(members);
    for (std::size_t i = 0; i < waits.size(); ++i) decide(waits[i], readings[positions[i]]);
    return std::move(found_);
  }

 private:
  [[nodiscard]] const GpuEvent& event(std::int64_t i) const { return l_.trace.gpu_events[static_cast<std::size_t>(i)]; }

  // Position in the launch order of the first kernel launched at `ns` or later.
  [[nodiscard]] std::size_t first_launched_from(std::int64_t ns) const {
    const auto found =
        std::partition_point(order_.begin(), order_.end(), [&](std::uint32_t i) { return l_.launched_ns(i) < ns; });
    return static_cast<std::size_t>(found - order_.begin());
  }

  // Calls that synchronisation events explain become edges at once; the others are to be read.
  std::vector<Wait> silent_waits() {
    std::vector<Wait> waits;
    for (const HostCall& call : l_.trace.calls) {
      if (call.kind != HostCallKind::wait_event || call.process != process_) continue;
      Wait wait{&call, first_launched_from(call.start_ns), {}};
      if (call.stream >= 0 && call.source_stream >= 0) {
        stated(call, wait.launched);
      } else if (wait.launched < order_.size()) {
        waits.push_back(wait);
      }
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
      find_waiters(waits[i], i + 1 < waits.size() ? waits[i + 1].launched : order_.size());
    }
    std::erase_if(waits, [](const Wait& wait) { return wait.waiters.empty(); });
    return waits;
  }

  // Launches of this process on the streams with this number, one per GPU.
  [[nodiscard]] std::vector<std::uint32_t> streams_numbered(std::int64_t number) const {
    std::vector<std::uint32_t> found;
    for (const std::uint32_t stream : streams_) {
      if (event(l_.on_stream[stream].front()).stream == static_cast<std::uint64_t>(number)) found.push_back(stream);
    }
    return found;
  }

  void stated(const HostCall& call, std::size_t launched) {
    if (call.record == kOutside) return;
    const std::int64_t recorded_ns =
        call.record < 0 ? call.start_ns : l_.trace.calls[static_cast<std::size_t>(call.record)].start_ns;
    const std::size_t recorded = first_launched_from(recorded_ns);
    for (const std::uint32_t waiting : streams_numbered(call.stream)) {
      for (const std::uint32_t sources : streams_numbered(call.source_stream)) {
        const std::vector<std::size_t>& after = positions_[waiting];
        const std::vector<std::size_t>& before = positions_[sources];
        const auto waiter = std::lower_bound(after.begin(), after.end(), launched);
        const auto source = std::lower_bound(before.begin(), before.end(), recorded);
        if (waiter == after.end() || source == before.begin()) continue;
        const auto event_at = [&](std::size_t position) { return order_[position]; };
        for (const std::uint32_t from : ends_of(l_.trace, before.begin(), std::prev(source), event_at)) {
          if (event(from).gpu == event(order_[*waiter]).gpu) add(from, order_[*waiter], {});
        }
      }
    }
  }

  void find_waiters(Wait& wait, std::size_t end) const {
    for (std::size_t i = wait.launched; i < end; ++i) add_waiter(order_[i], wait);
    if (!wait.waiters.empty() || wait.launched == 0) return;
    const std::uint32_t last = order_[wait.launched - 1];
    const auto other = std::find_if(order_.begin() + static_cast<std::ptrdiff_t>(wait.launched), order_.end(),
                                    [&](std::uint32_t i) { return l_.stream[i] != l_.stream[last]; });
    if (other != order_.end()) wait.waiters.push_back(*other);
  }

  void add_waiter(std::uint32_t i, Wait& wait) const {
    if (waiter_on(wait, l_.stream[i]) == kNone) wait.waiters.push_back(i);
  }

  // Kernels of one stream that were launched before a wait, youngest first: the last of all, then the last of each
  // earlier phase; without phases one after the other. Whether each is the last of its phase.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, bool>> sources_of(const Wait& wait, std::uint32_t stream) const {
    std::vector<std::pair<std::uint32_t, bool>> sources;
    const std::vector<std::size_t>& launched = positions_[stream];
    std::int32_t phase = kNoPhase;
    auto it = std::lower_bound(launched.begin(), launched.end(), wait.launched);
    while (it != launched.begin()) {
      const std::uint32_t candidate = order_[*--it];
      const std::int32_t its_phase = l_.meaning.places[candidate].phase;
      const bool last = resolve(l_, candidate, relative_to(l_, candidate, candidate, true)) == candidate;
      const bool youngest = sources.empty();
      if (youngest || its_phase == kNoPhase || its_phase != phase) {
        sources.emplace_back(candidate, its_phase != kNoPhase && (last || !youngest));
      }
      phase = its_phase;
      if (sources.size() > (its_phase == kNoPhase ? kEventsBack : kPhasesBack)) break;
    }
    return sources;
  }

  // Of each pair of streams the youngest source that the layers do not refute.
  [[nodiscard]] std::vector<Reading> readings_of(const std::vector<const Wait*>& members) const {
    std::vector<Reading> readings;
    const Wait& newest = *members.back();
    for (const std::uint32_t waiter : newest.waiters) {
      for (const std::uint32_t stream : streams_) {
        const std::uint32_t any = l_.on_stream[stream].front();
        if (stream == l_.stream[waiter] || event(any).gpu != event(waiter).gpu) continue;
        for (const auto& [source, last] : sources_of(newest, stream)) {
          const Relative relative = relative_to(l_, waiter, source, last);
          const std::optional<Reading> reading = read_as(members, l_.stream[waiter], relative);
          if (!reading) continue;
          readings.push_back(*reading);
          break;
        }
      }
    }
    return readings;
  }

  // nullopt: the layers refute it.
  [[nodiscard]] std::optional<Reading> read_as(const std::vector<const Wait*>& members, std::uint32_t waiter_stream,
                                               const Relative& relative) const {
    std::int64_t explained = 0;
    Votes votes;
    for (const Wait* wait : members) {
      const std::int64_t waiter = waiter_on(*wait, waiter_stream);
      if (waiter == kNone) continue;
      const std::int64_t source = resolve(l_, static_cast<std::uint32_t>(waiter), relative);
      if (source == kNone) continue;
      const bool later = l_.launched_ns(static_cast<std::uint32_t>(source)) > wait->call->start_ns;
      const bool fits = !later && source < waiter && event(source).end_ns <= event(waiter).start_ns;
      votes.add(fits);
      const std::int64_t ready_ns = l_.ready_ns[static_cast<std::size_t>(waiter)];
      if (fits) explained += std::max<std::int64_t>(0, event(source).end_ns - ready_ns);
    }
    if (!votes.accept()) return std::nullopt;
    return Reading{waiter_stream, relative, explained, votes.evidence()};
  }

  [[nodiscard]] std::int64_t waiter_on(const Wait& wait, std::uint32_t stream) const {
    const auto found =
        std::find_if(wait.waiters.begin(), wait.waiters.end(), [&](std::uint32_t i) { return l_.stream[i] == stream; });
    return found == wait.waiters.end() ? kNone : std::int64_t{*found};
  }

  void decide(const Wait& wait, const std::vector<Reading>& readings) {
    const auto best = std::max_element(readings.begin(), readings.end(), [](const Reading& a, const Reading& b) {
      return a.explained_ns < b.explained_ns;
    });
    if (best != readings.end() && best->explained_ns >= kWorthExplaining) {
      const std::int64_t waiter = waiter_on(wait, best->waiter_stream);
      const std::int64_t source =
          waiter == kNone ? kNone : resolve(l_, static_cast<std::uint32_t>(waiter), best->source);
      if (source != kNone) {
        add(static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(waiter), best->evidence);
      }
      return;
    }
    // Nothing waited here: the first kernel launched follows the youngest source that says something new.
    const std::uint32_t waiter = wait.waiters.front();
    std::int64_t youngest = kNone;
    Evidence evidence;
    for (const Reading& reading : readings) {
      if (reading.waiter_stream != l_.stream[waiter]) continue;
      const std::int64_t source = resolve(l_, waiter, reading.source);
      if (source == kNone || knowledge_.implies(static_cast<std::uint32_t>(source), waiter)) continue;
      const auto launched = [&](std::int64_t i) { return l_.launched_ns(static_cast<std::uint32_t>(i)); };
      if (youngest != kNone && launched(source) <= launched(youngest)) continue;
      youngest = source;
      evidence = reading.evidence;
    }
    if (youngest != kNone) add(static_cast<std::uint32_t>(youngest), waiter, evidence);
  }

  void add(std::uint32_t before, std::uint32_t after, Evidence evidence) {
    if (before >= after || event(before).end_ns > event(after).start_ns) return;
    if (knowledge_.implies(before, after)) return;
    knowledge_.add(before, after);
    found_.push_back({{before, false}, {after, false}, Reason::event_wait, Order::end_to_start, evidence});
  }

  const Launches& l_;
  std::uint32_t process_;
  std::vector<std::uint32_t> order_;                 // events of this process as it launched them
  std::vector<std::vector<std::size_t>> positions_;  // in that order, by stream
  std::vector<std::uint32_t> streams_;               // that this process launches on
  Knowledge knowledge_;
  std::vector<Dependency> found_;
};

}  // namespace

std::vector<Dependency> event_waits(const Launches& launches) {
  std::uint32_t processes = 0;
  for (const HostCall& call : launches.trace.calls) {
    if (call.kind == HostCallKind::wait_event) processes = std::max(processes, call.process + 1);
  }
  std::vector<Dependency> found;
  for (std::uint32_t process = 0; process < processes; ++process) {
    const std::vector<Dependency> of_process = WaitReader(launches, process).read();
    found.insert(found.end(), of_process.begin(), of_process.end());
  }
  return found;
}

}  // namespace moeline
