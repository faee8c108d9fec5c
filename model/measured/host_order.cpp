#include <algorithm>
#include <map>
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
  bool noticed = false;  // the host went on soon after the event's end
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
      in_process_[l_.process(i)].events.push_back(i);
      on_stream_[l_.stream[i]].push_back(i);
    }
    for (std::uint32_t stream = 0; stream < on_stream_.size(); ++stream) {
      if (!on_stream_[stream].empty()) numbered_[event(on_stream_[stream].front()).stream].push_back(stream);
    }
  }

  // Of every stream that this process has launched on since it was asked last the event that ended last. REQUIRES to
  // be asked in order of time.
  [[nodiscard]] std::vector<std::uint32_t> of_all_streams(std::uint32_t process, std::int64_t before_ns) {
    OfProcess& of = in_process_[process];
    std::map<std::uint32_t, std::uint32_t> last;
    for (; of.next < of.events.size() && l_.launched_ns(of.events[of.next]) < before_ns; ++of.next) {
      const std::uint32_t i = of.events[of.next];
      std::uint32_t& known = last.try_emplace(l_.stream[i], i).first->second;
      if (event(i).end_ns > event(known).end_ns) known = i;
    }
    std::vector<std::uint32_t> events;
    for (const auto& [stream, i] : last) events.push_back(i);
    return events;
  }

  // The last that was launched on the streams of this number, one per GPU.
  [[nodiscard]] std::vector<std::uint32_t> of_stream(std::uint32_t process, std::int64_t number,
                                                     std::int64_t before_ns) const {
    std::vector<std::uint32_t> found;
    const auto streams = numbered_.find(number);
    if (streams == numbered_.end()) return found;
    for (const std::uint32_t stream : streams->second) {
      const std::vector<std::uint32_t>& events = on_stream_[stream];
      const auto later = std::partition_point(events.begin(), events.end(),
                                              [&](std::uint32_t i) { return l_.launched_ns(i) < before_ns; });
      if (later != events.begin() && l_.process(*std::prev(later)) == process) found.push_back(*std::prev(later));
    }
    return found;
  }

 private:
  struct OfProcess {
    std::vector<std::uint32_t> events;  // as launched
    std::size_t next = 0;               // of those that nobody has asked for
  };

  [[nodiscard]] const GpuEvent& event(std::uint32_t i) const { return l_.trace.gpu_events[i]; }

  const Launches& l_;
  std::map<std::uint32_t, OfProcess> in_process_;
  std::vector<std::vector<std::uint32_t>> on_stream_;            // as launched
  std::map<std::int64_t, std::vector<std::uint32_t>> numbered_;  // streams by their number
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

std::vector<bool> are_launches(const std::vector<std::int64_t>& launched) {
  std::vector<bool> launches;
  for (const std::int64_t event : launched) launches.push_back(event != kNone);
  return launches;
}

class HostReader {
 public:
  explicit HostReader(const Launches& launches)
      : l_(launches),
        launched_(first_launched(launches)),
        program_(host_programs(launches.trace, are_launches(launched_))),
        so_far_(launches) {}

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

  void follow(const ProgramSoFar& program, const std::vector<std::uint32_t>& returned, std::uint32_t next) {
    const auto previous = static_cast<std::uint32_t>(program.launch);
    found_.push_back({{previous, true}, {next, true}, Reason::host_order, Order::start_to_start});
    for (const std::uint32_t wait : returned) wait_for(wait, next);
    if (returned.empty() && !l_.trace.states_order) look_for_pause(previous, next);
  }

  void wait_for(std::uint32_t wait, std::uint32_t next) {
    const HostCall& waits = call(wait);
    if (waits.blocks) return add_wait(launched_[wait], next, {});
    if (waits.kind == HostCallKind::synchronize_device) {
      for (const std::uint32_t i : so_far_.of_all_streams(waits.process, waits.start_ns)) add_wait(i, next, {});
    } else if (waits.source_stream >= 0) {
      const std::int64_t until =
          waits.record < 0 ? waits.start_ns : call(static_cast<std::uint32_t>(waits.record)).start_ns;
      for (const std::uint32_t i : so_far_.of_stream(waits.process, waits.source_stream, until)) add_wait(i, next, {});
    } else {
      wait_for_last(wait, next);
    }
  }

  // Of the program of that call; where the trace does not say who launched it, of its process.
  [[nodiscard]] bool is_of_program(std::uint32_t i, std::uint32_t wait) const {
    const std::int32_t by = l_.trace.gpu_events[i].call;
    return by < 0 ? l_.process(i) == call(wait).process : program_[static_cast<std::size_t>(by)] == program_[wait];
  }

  // Nothing says for what: for what ended last in it.
  void wait_for_last(std::uint32_t wait, std::uint32_t next) {
    const HostCall& waits = call(wait);
    const std::int64_t last = l_.last_ended(
        waits.end_ns, [&](std::uint32_t i) { return l_.launched_ns(i) < waits.start_ns && is_of_program(i, wait); });
    const bool returned_at_once = last == kNone || event(last).end_ns < waits.start_ns;
    if (!returned_at_once) add_wait(last, next, {1, 1});
  }

  // What ends after the call that waited for it, by clocks that are not one, was not waited for.
  void add_wait(std::int64_t before, std::uint32_t next, Evidence evidence) {
    if (event(before).end_ns > call(next).start_ns) return;
    found_.push_back(
        {{static_cast<std::uint32_t>(before), false}, {next, true}, Reason::host_wait, Order::end_to_start, evidence});
  }

  void look_for_pause(std::uint32_t previous, std::uint32_t next) {
    const auto launched = static_cast<std::uint32_t>(launched_[previous]);
    const std::int64_t end_ns = event(launched).end_ns;
    const std::int64_t pause = call(next).start_ns - call(previous).end_ns;
    const bool inside = end_ns > call(previous).start_ns && end_ns < call(next).start_ns;
    if (pause <= kPause || !inside || l_.meaning.places[launched].phase == kNoPhase) return;
    const std::int64_t lag = call(next).start_ns - end_ns;
    pauses_.push_back({launched, next, lag <= kNotices && kOfPause * lag <= pause});
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
      found_.push_back(
          {{pause.event, false}, {pause.next_call, true}, Reason::host_wait, Order::end_to_start, evidence});
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
