#include "measured/event_waits.hpp"

#include <algorithm>
#include <optional>

namespace moeline {
namespace {

constexpr std::int64_t kWorthExplaining = 20'000;  // ns that a kernel stood still without another reason
constexpr int kPhasesBack = 12;
constexpr int kEventsBack = 64;

struct Wait {
  std::int64_t at_ns = 0;
  std::size_t launched = 0;            ///< position in the launch order of the first kernel after it
  std::vector<std::uint32_t> waiters;  ///< who may have waited, in order of launch, one per stream
};

// "The second wait in front of kernel 1 of dispatch(B)": the same in every layer.
using Position = std::tuple<std::string, std::uint32_t, int, std::uint16_t>;

struct Reading {
  std::uint32_t waiter_stream = 0;
  Relative source;
  std::int64_t explained_ns = 0;  // summed over the layers
};

// For every kernel, the newest one of each other stream that it is known to follow. Kept where it changes.
class Knowledge {
 public:
  explicit Knowledge(const Launches& launches) : launches_(launches), known_(launches.on_stream.size()) {}

  [[nodiscard]] bool implies(std::uint32_t before, std::uint32_t after) const {
    const std::vector<std::int64_t> known = at(after);
    return known[launches_.stream[before]] >= before;
  }
  void add(std::uint32_t before, std::uint32_t after) {
    std::vector<std::int64_t> learnt = at(before);
    learnt[launches_.stream[before]] = std::max<std::int64_t>(learnt[launches_.stream[before]], before);
    auto& own = known_[launches_.stream[after]];
    own.try_emplace(after, at(after));
    for (auto it = own.find(after); it != own.end(); ++it) {
      for (std::size_t i = 0; i < learnt.size(); ++i) it->second[i] = std::max(it->second[i], learnt[i]);
    }
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> at(std::uint32_t event) const {
    const auto& own = known_[launches_.stream[event]];
    const auto later = own.upper_bound(event);
    return later == own.begin() ? std::vector<std::int64_t>(known_.size(), kNone) : std::prev(later)->second;
  }

  const Launches& launches_;
  std::vector<std::map<std::uint32_t, std::vector<std::int64_t>>> known_;  // by stream; events of one start in order
};

class Reader {
 public:
  explicit Reader(const Launches& launches)
      : l_(launches), trace_(launches.trace), order_(launches.meaning.order), knowledge_(launches) {
    launched_on_.resize(launches.on_stream.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      launched_on_[launches.stream[order_[i]]].push_back(i);
      launched_on_id_[trace_.gpu_events[order_[i]].stream].push_back(i);
    }
  }

  std::vector<Dependency> read() {
    const std::vector<Wait> waits = silent_waits();
    std::map<Position, std::vector<const Wait*>> alike;
    std::vector<Position> positions;
    std::map<Position, int> ordinals;  // of waits in front of one kernel
    const Wait* before = nullptr;
    int ordinal = 0;
    for (const Wait& wait : waits) {
      ordinal = before != nullptr && before->launched == wait.launched ? ordinal + 1 : 0;
      before = &wait;
      positions.push_back(position_of(wait, ordinal));
      alike[positions.back()].push_back(&wait);
    }
    std::map<Position, std::vector<Reading>> readings;
    for (const auto& [position, members] : alike) readings[position] = readings_of(members);
    for (std::size_t i = 0; i < waits.size(); ++i) decide(waits[i], readings[positions[i]]);
    return std::move(found_);
  }

 private:
  [[nodiscard]] const GpuEvent& event(std::int64_t i) const { return trace_.gpu_events[static_cast<std::size_t>(i)]; }

  // Calls that synchronisation events explain become edges at once; the others are to be read.
  std::vector<Wait> silent_waits() {
    std::vector<Wait> waits;
    for (const HostCall& call : trace_.calls) {
      if (call.kind != HostCallKind::wait_event) continue;
      Wait wait{call.start_ns, l_.first_launched_from(call.start_ns), {}};
      if (call.stream >= 0 && call.source_stream >= 0) {
        stated(call, wait.launched);
      } else if (wait.launched < order_.size()) {
        waits.push_back(wait);
      }
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
      const std::size_t end = i + 1 < waits.size() ? waits[i + 1].launched : order_.size();
      find_waiters(waits[i], end);
    }
    std::erase_if(waits, [](const Wait& wait) { return wait.waiters.empty(); });
    return waits;
  }

  void stated(const HostCall& call, std::size_t launched) {
    const std::int64_t recorded_ns =
        call.record < 0 ? call.start_ns : trace_.calls[static_cast<std::size_t>(call.record)].start_ns;
    const std::vector<std::size_t>& on_waiting = launched_on_id_[call.stream];
    const std::vector<std::size_t>& on_source = launched_on_id_[call.source_stream];
    const auto waiter = std::lower_bound(on_waiting.begin(), on_waiting.end(), launched);
    const auto after = std::lower_bound(on_source.begin(), on_source.end(), l_.first_launched_from(recorded_ns));
    if (waiter != on_waiting.end() && after != on_source.begin()) add(order_[*std::prev(after)], order_[*waiter]);
  }

  void find_waiters(Wait& wait, std::size_t end) const {
    for (std::size_t i = wait.launched; i < end; ++i) add_waiter(order_[i], wait);
    if (!wait.waiters.empty()) return;
    if (wait.launched == 0) return;
    const std::uint32_t last = order_[wait.launched - 1];
    const auto other = std::find_if(order_.begin() + static_cast<std::ptrdiff_t>(wait.launched), order_.end(),
                                    [&](std::uint32_t i) { return l_.stream[i] != l_.stream[last]; });
    if (other != order_.end()) wait.waiters.push_back(*other);
  }

  void add_waiter(std::uint32_t i, Wait& wait) const {
    const auto same = [&](std::uint32_t other) { return l_.stream[other] == l_.stream[i]; };
    if (std::none_of(wait.waiters.begin(), wait.waiters.end(), same)) wait.waiters.push_back(i);
  }

  [[nodiscard]] Position position_of(const Wait& wait, int ordinal) const {
    const std::uint32_t first = wait.waiters.front();
    const EventPlace& place = l_.meaning.places[first];
    if (place.phase == kNoPhase) return {"", first, ordinal, event(first).gpu};
    return {l_.meaning.phases[static_cast<std::size_t>(place.phase)].name, place.index, ordinal, event(first).gpu};
  }

  // Kernels of one stream that were launched before a wait, youngest first: the last of all, then the last of each
  // earlier phase; without phases one after the other.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, bool>> sources_of(const Wait& wait, std::uint32_t stream) const {
    std::vector<std::pair<std::uint32_t, bool>> sources;
    std::int32_t phase = kNoPhase;
    int phases = 0;
    const std::vector<std::size_t>& launched = launched_on_[stream];
    for (auto it = std::lower_bound(launched.begin(), launched.end(), wait.launched); it != launched.begin();) {
      const std::uint32_t candidate = order_[*--it];
      const std::int32_t its_phase = l_.meaning.places[candidate].phase;
      const bool youngest = sources.empty();
      const bool last_of_phase = its_phase != kNoPhase && its_phase != phase;
      if (!youngest && !last_of_phase && its_phase != kNoPhase) continue;
      phase = its_phase;
      if (youngest && its_phase != kNoPhase) {
        const Relative as_last = relative_to(l_, candidate, candidate, true);
        sources.emplace_back(candidate, resolve(l_, candidate, as_last) == candidate);
      } else {
        sources.emplace_back(candidate, its_phase != kNoPhase);
      }
      if (++phases > kPhasesBack && its_phase != kNoPhase) break;
      if (phases > kEventsBack) break;
    }
    return sources;
  }

  // Of each pair of streams the youngest source that no layer refutes.
  [[nodiscard]] std::vector<Reading> readings_of(const std::vector<const Wait*>& members) const {
    std::vector<Reading> readings;
    const Wait& newest = *members.back();
    for (const std::uint32_t waiter : newest.waiters) {
      for (std::uint32_t stream = 0; stream < l_.on_stream.size(); ++stream) {
        const std::uint32_t any = l_.on_stream[stream].front();
        if (stream == l_.stream[waiter] || event(any).gpu != event(waiter).gpu) continue;
        for (const auto& [source, last] : sources_of(newest, stream)) {
          const Relative relative = relative_to(l_, waiter, source, last);
          const std::optional<std::int64_t> explained = explained_ns(members, l_.stream[waiter], relative);
          if (!explained) continue;
          readings.push_back({l_.stream[waiter], relative, *explained});
          break;
        }
      }
    }
    return readings;
  }

  // nullopt: some layer refutes it.
  [[nodiscard]] std::optional<std::int64_t> explained_ns(const std::vector<const Wait*>& members,
                                                         std::uint32_t waiter_stream, const Relative& relative) const {
    std::int64_t explained = 0;
    for (const Wait* wait : members) {
      const std::int64_t waiter = waiter_on(*wait, waiter_stream);
      if (waiter == kNone) continue;
      const std::int64_t source = resolve(l_, static_cast<std::uint32_t>(waiter), relative);
      if (source == kNone) continue;
      const bool later = l_.launched_ns(static_cast<std::uint32_t>(source)) > wait->at_ns;
      if (later || source >= waiter || event(source).end_ns > event(waiter).start_ns) return std::nullopt;
      explained += std::max<std::int64_t>(0, event(source).end_ns - l_.ready_ns[static_cast<std::size_t>(waiter)]);
    }
    return explained;
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
      if (source != kNone) add(static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(waiter));
      return;
    }
    // Nothing waited here: the first kernel launched follows the youngest source that says something new.
    const std::uint32_t waiter = wait.waiters.front();
    std::int64_t youngest = kNone;
    for (const Reading& reading : readings) {
      if (reading.waiter_stream != l_.stream[waiter]) continue;
      const std::int64_t source = resolve(l_, waiter, reading.source);
      if (source == kNone || knowledge_.implies(static_cast<std::uint32_t>(source), waiter)) continue;
      const auto launched = [&](std::int64_t i) { return l_.launched_ns(static_cast<std::uint32_t>(i)); };
      if (youngest == kNone || launched(source) > launched(youngest)) youngest = source;
    }
    if (youngest != kNone) add(static_cast<std::uint32_t>(youngest), waiter);
  }

  void add(std::uint32_t before, std::uint32_t after) {
    if (before >= after || knowledge_.implies(before, after)) return;
    if (event(before).end_ns > event(after).start_ns) return;
    knowledge_.add(before, after);
    found_.push_back({{before, false}, {after, false}, Reason::event_wait, false});
  }

  const Launches& l_;
  const Trace& trace_;
  const std::vector<std::uint32_t>& order_;
  std::vector<std::vector<std::size_t>> launched_on_;                // by stream, positions in the order of launch
  std::map<std::int64_t, std::vector<std::size_t>> launched_on_id_;  // the same by the trace's number of the stream
  Knowledge knowledge_;
  std::vector<Dependency> found_;
};

}  // namespace

std::vector<Dependency> event_waits(const Launches& launches) { return Reader(launches).read(); }

}  // namespace moeline
