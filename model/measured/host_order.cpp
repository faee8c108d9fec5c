#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "measured/edges.hpp"
#include "measured/host_programs.hpp"

namespace moeline {
namespace {

constexpr std::int64_t kPause = 100'000;    // ns: longer pauses of the host may have been spent waiting for the GPU
constexpr std::int64_t kNotices = 100'000;  // ns from the end of an event until the host goes on,
constexpr int kOfPause = 4;                 // and at most a quarter of the pause

// A pause between two launches, and the kernel that the host may have waited for.
struct HostPause {
  std::uint32_t event = 0;
  std::uint32_t next_call = 0;
  std::uint32_t host_order = 0;  // the dependency between the launches around it
  bool noticed = false;          // the host went on soon after the event's end
};

// What one program did last.
struct ProgramSoFar {
  std::int64_t launch = kNone;       // a call
  std::vector<std::uint32_t> waits;  // calls that held it, and that no launch stands behind yet
};

// What each process has launched, and of each of its streams the last of it.
class Launched {
 public:
  explicit Launched(const Launches& launches) : l_(launches), on_stream_(launches.on_stream.size()) {
    for (const std::uint32_t i : l_.meaning.order) {
      if (l_.trace.gpu_events[i].call < 0) continue;
      in_process_[l_.process(i)].push_back(i);
      on_stream_[l_.stream[i]].push_back(i);
    }
    for (std::uint32_t stream = 0; stream < on_stream_.size(); ++stream) {
      if (!on_stream_[stream].empty())
        numbered_[l_.trace.gpu_events[on_stream_[stream].front()].stream].push_back(stream);
    }
  }

  // Of every stream that this process has launched on since this program asked last what it ends with. REQUIRES that a
  // program asks in order of time.
  [[nodiscard]] std::vector<std::uint32_t> of_all_streams(std::uint32_t program, std::uint32_t process,
                                                          std::int64_t before_ns) {
    const std::vector<std::uint32_t>& launched = in_process_[process];
    std::size_t& next = asked_[program];
    std::set<std::uint32_t> streams;
    for (; next < launched.size() && l_.launched_ns(launched[next]) < before_ns; ++next) {
      streams.insert(l_.stream[launched[next]]);
    }
    std::vector<std::uint32_t> events;
    for (const std::uint32_t stream : streams) add_ends(stream, before_ns, events);
    return events;
  }

  // The same of the streams of this number, one per GPU.
  [[nodiscard]] std::vector<std::uint32_t> of_stream(std::uint32_t process, std::int64_t number,
                                                     std::int64_t before_ns) const {
    std::vector<std::uint32_t> events;
    const auto streams = numbered_.find(number);
    if (streams == numbered_.end()) return events;
    for (const std::uint32_t stream : streams->second) {
      if (l_.process(on_stream_[stream].front()) == process) add_ends(stream, before_ns, events);
    }
    return events;
  }

 private:
  void add_ends(std::uint32_t stream, std::int64_t before_ns, std::vector<std::uint32_t>& events) const {
    const std::vector<std::uint32_t>& own = on_stream_[stream];
    const auto later =
        std::partition_point(own.begin(), own.end(), [&](std::uint32_t i) { return l_.launched_ns(i) < before_ns; });
    if (later == own.begin()) return;
    const auto itself = [](std::uint32_t i) { return i; };
    const std::vector<std::uint32_t> ends = ends_of(l_.trace, own.begin(), std::prev(later), itself);
    events.insert(events.end(), ends.begin(), ends.end());
  }

  const Launches& l_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> in_process_;  // as launched
  std::map<std::uint32_t, std::size_t> asked_;                      // by program: so many of its process's
  std::vector<std::vector<std::uint32_t>> on_stream_;               // as launched
  std::map<std::int64_t, std::vector<std::uint32_t>> numbered_;     // streams by their number
};

// By call: the first GPU event that it launched, or kNone.
std::vector<std::int64_t> first_launched(const Launches& l) {
  std::vector<std::int64_t> launched(l.trace.calls.size(), kNone);
  for (const std::uint32_t i : l.meaning.order) {  // of a graph's launch the first
    const std::int32_t call = l.trace.gpu_events[i].call;
    if (call < 0) continue;
    std::int64_t& first = launched[static_cast<std::size_t>(call)];
    if (first == kNone) first = i;
  }
  return launched;
}

class HostReader {
 public:
  explicit HostReader(const Launches& launches)
      : l_(launches), launched_(first_launched(launches)), program_(host_programs(launches.trace)), so_far_(launches) {}

  std::vector<Dependency> read() {
    std::map<std::uint32_t, ProgramSoFar> programs;
    for (std::uint32_t i = 0; i < l_.trace.calls.size(); ++i) {
      ProgramSoFar& program = programs[program_[i]];
      if (launched_[i] != kNone) {
        const std::vector<std::uint32_t> returned = take_returned(program, i);
        if (program.launch != kNone) follow(program, returned, i);
        program.launch = i;
      }
      if (holds_host(call(i))) program.waits.push_back(i);
    }
    add_pauses();
    return std::move(found_);
  }

 private:
  [[nodiscard]] const HostCall& call(std::uint32_t i) const { return l_.trace.calls[i]; }
  [[nodiscard]] const GpuEvent& event(std::int64_t i) const { return l_.trace.gpu_events[static_cast<std::size_t>(i)]; }

  // A launch in the middle of a wait is another thread's, which waits for nothing.
  std::vector<std::uint32_t> take_returned(ProgramSoFar& program, std::uint32_t now) const {
    std::vector<std::uint32_t> returned;
    std::erase_if(program.waits, [&](std::uint32_t wait) {
      const bool has = call(wait).end_ns <= call(now).start_ns;
      if (has) returned.push_back(wait);
      return has;
    });
    return returned;
  }

  // What held the host between two launches, and since when it no longer did.
  struct Hold {
    std::vector<std::uint32_t> events;
    Evidence evidence{};
    std::int64_t start_ns = 0, released_ns = 0;
  };

  // The host's own time from one launch to the next is what is left of it without its waits, and from what it waited
  // for what is left behind that: so a change of one moves the next launch as far as the other lets it.
  void follow(const ProgramSoFar& program, const std::vector<std::uint32_t>& returned, std::uint32_t next) {
    const auto previous = static_cast<std::uint32_t>(program.launch);
    std::int64_t waited_later_ns = 0;
    std::vector<Hold> holds;
    for (const std::uint32_t wait : returned) holds.push_back(hold_of(wait, next));
    std::vector<Dependency> waits;
    for (auto hold = holds.rbegin(); hold != holds.rend(); ++hold) {
      const std::int64_t own_ns = std::max<std::int64_t>(0, call(next).start_ns - hold->released_ns - waited_later_ns);
      for (const std::uint32_t event : hold->events) waits.push_back(wait_for(event, next, hold->evidence, own_ns));
      waited_later_ns += hold->released_ns - hold->start_ns;
    }
    const std::int64_t own_ns = call(next).start_ns - call(previous).start_ns - waited_later_ns;
    found_.push_back({{previous, true},
                      {next, true},
                      Reason::host_order,
                      Order::start_to_start,
                      {},
                      std::max<std::int64_t>(0, own_ns)});
    found_.insert(found_.end(), waits.rbegin(), waits.rend());
    if (returned.empty()) look_for_pause(previous, next);
  }

  static Dependency wait_for(std::uint32_t event, std::uint32_t next, Evidence evidence, std::int64_t own_ns) {
    return {{event, false}, {next, true}, Reason::host_wait, Order::end_to_start, evidence, own_ns};
  }

  // What ends after the next launch, by clocks that are not one, was not waited for.
  Hold hold_of(std::uint32_t wait, std::uint32_t next) {
    Hold hold{.events = events_of(wait), .start_ns = call(wait).start_ns, .released_ns = call(wait).start_ns};
    if (!says_for_what(call(wait))) hold.evidence = {1, 1};
    std::erase_if(hold.events, [&](std::uint32_t i) { return event(i).end_ns > call(next).start_ns; });
    for (const std::uint32_t i : hold.events) hold.released_ns = std::max(hold.released_ns, event(i).end_ns);
    return hold;
  }

  static bool says_for_what(const HostCall& wait) {
    return wait.blocks || wait.kind == HostCallKind::synchronize_device || wait.source_stream >= 0;
  }

  std::vector<std::uint32_t> events_of(std::uint32_t wait) {
    const HostCall& waits = call(wait);
    if (waits.blocks) return what_it_launched(wait);
    if (waits.kind == HostCallKind::synchronize_device)
      return so_far_.of_all_streams(program_[wait], waits.process, waits.start_ns);
    if (waits.source_stream < 0) return last_ended_in(wait);
    if (waits.record == kOutside) return {};
    const std::int64_t until =
        waits.record < 0 ? waits.start_ns : call(static_cast<std::uint32_t>(waits.record)).start_ns;
    return so_far_.of_stream(waits.process, waits.source_stream, until);
  }

  // Of a part of a trace it may be outside.
  [[nodiscard]] std::vector<std::uint32_t> what_it_launched(std::uint32_t launch) const {
    if (launched_[launch] == kNone) return {};
    return {static_cast<std::uint32_t>(launched_[launch])};
  }

  // Of the program of that call; where the trace does not say who launched it, of its process.
  [[nodiscard]] bool is_of_program(std::uint32_t i, std::uint32_t wait) const {
    const std::int32_t by = l_.trace.gpu_events[i].call;
    return by < 0 ? l_.process(i) == call(wait).process : program_[static_cast<std::size_t>(by)] == program_[wait];
  }

  // Nothing says for what: for what ended last in it, of its own program where there is such a thing.
  [[nodiscard]] std::vector<std::uint32_t> last_ended_in(std::uint32_t wait) const {
    const HostCall& waits = call(wait);
    const auto in_it = [&](auto belongs) {
      const std::int64_t last = l_.last_ended(waits.end_ns, [&](std::uint32_t i) {
        return l_.launched_ns(i) < waits.start_ns && l_.process(i) == waits.process && belongs(i);
      });
      return last == kNone || event(last).end_ns < waits.start_ns ? kNone : last;
    };
    std::int64_t last = in_it([&](std::uint32_t i) { return is_of_program(i, wait); });
    if (last == kNone) last = in_it([](std::uint32_t) { return true; });
    if (last == kNone) return {};
    return {static_cast<std::uint32_t>(last)};
  }

  void look_for_pause(std::uint32_t previous, std::uint32_t next) {
    const auto launched = static_cast<std::uint32_t>(launched_[previous]);
    const std::int64_t end_ns = event(launched).end_ns;
    const std::int64_t pause = call(next).start_ns - call(previous).end_ns;
    const bool inside = end_ns > call(previous).start_ns && end_ns < call(next).start_ns;
    if (pause <= kPause || !inside || l_.meaning.places[launched].phase == kNoPhase) return;
    const std::int64_t lag = call(next).start_ns - end_ns;
    const auto host_order = static_cast<std::uint32_t>(found_.size() - 1);
    pauses_.push_back({launched, next, host_order, lag <= kNotices && kOfPause * lag <= pause});
  }

  // Where the host waited in most layers it did so in all of them, however late it was.
  void add_pauses() {
    std::map<Step, std::size_t> noticed;
    for (const HostPause& pause : pauses_) {
      if (pause.noticed) ++noticed[step_of(l_.meaning, pause.event)];
    }
    std::map<Step, std::size_t> layers = layers_with(l_.meaning, noticed);
    for (const HostPause& pause : pauses_) {
      const Step step = step_of(l_.meaning, pause.event);
      if (2 * noticed[step] <= layers[step]) continue;
      const Evidence evidence{static_cast<std::uint32_t>(noticed[step]), static_cast<std::uint32_t>(layers[step])};
      const std::int64_t lag = call(pause.next_call).start_ns - event(pause.event).end_ns;
      Dependency& order = found_[pause.host_order];
      const HostCall& before = call(order.before.index);
      order.host_ns = std::min(order.host_ns, before.end_ns - before.start_ns + lag);
      found_.push_back(wait_for(pause.event, pause.next_call, evidence, lag));
    }
  }

  const Launches& l_;
  std::vector<std::int64_t> launched_;  // by call: the GPU event, or kNone
  std::vector<std::uint32_t> program_;  // by call
  Launched so_far_;
  std::vector<HostPause> pauses_;
  std::vector<Dependency> found_;
};

}  // namespace

std::vector<Dependency> host_order(const Launches& launches) { return HostReader(launches).read(); }

}  // namespace moeline
