#include "measured/host_order.hpp"

#include <map>

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

// What one process did last.
struct Process {
  std::int64_t launch = kNone;  // a call
  const HostCall* synchronised = nullptr;

  // A launch while it has not is another thread's, which waits for nothing.
  [[nodiscard]] bool has_returned(const HostCall& now) const {
    return synchronised != nullptr && synchronised->end_ns <= now.start_ns;
  }
};

class HostReader {
 public:
  explicit HostReader(const Launches& launches) : l_(launches), launched_(launches.trace.calls.size(), kNone) {
    for (const std::uint32_t i : l_.meaning.order) {  // of a graph's launch the first
      const std::int32_t call = l_.trace.gpu_events[i].call;
      if (call >= 0 && launched_[static_cast<std::size_t>(call)] == kNone) {
        launched_[static_cast<std::size_t>(call)] = i;
      }
    }
  }

  std::vector<Dependency> read() {
    std::map<std::uint32_t, Process> processes;
    for (std::uint32_t i = 0; i < l_.trace.calls.size(); ++i) {
      const HostCall& now = l_.trace.calls[i];
      Process& process = processes[now.process];
      if (now.kind == HostCallKind::synchronize) process.synchronised = &now;
      if (launched_[i] == kNone) continue;
      if (process.launch != kNone) follow(process, i);
      process.launch = i;
      if (process.has_returned(now)) process.synchronised = nullptr;
    }
    add_pauses();
    return std::move(found_);
  }

 private:
  void follow(const Process& process, std::uint32_t next) {
    const auto previous_call = static_cast<std::uint32_t>(process.launch);
    found_.push_back({{previous_call, true}, {next, true}, Reason::host_order, true});
    const HostCall& previous = l_.trace.calls[previous_call];
    const HostCall& now = l_.trace.calls[next];
    if (process.has_returned(now)) return wait_for_all(*process.synchronised, next);
    const auto event = static_cast<std::uint32_t>(launched_[previous_call]);
    const std::int64_t end_ns = l_.trace.gpu_events[event].end_ns;
    const std::int64_t pause = now.start_ns - previous.end_ns;
    const bool inside = end_ns > previous.start_ns && end_ns < now.start_ns;
    if (pause <= kPause || !inside || l_.meaning.places[event].phase == kNoPhase) return;
    const std::int64_t lag = now.start_ns - end_ns;
    pauses_.push_back({event, next, lag <= kNotices && kOfPause * lag <= pause});
  }

  void wait_for_all(const HostCall& synchronised, std::uint32_t next) {
    const std::int64_t event = l_.last_ended(synchronised.end_ns, [&](std::uint32_t i) {
      return l_.process(i) == synchronised.process && l_.launched_ns(i) < synchronised.start_ns;
    });
    if (event == kNone) return;
    const bool returned_at_once = l_.trace.gpu_events[static_cast<std::size_t>(event)].end_ns < synchronised.start_ns;
    if (returned_at_once) return;  // who knows for what
    found_.push_back({{static_cast<std::uint32_t>(event), false}, {next, true}, Reason::host_wait, false});
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
      found_.push_back({{pause.event, false}, {pause.next_call, true}, Reason::host_wait, false});
    }
  }

  const Launches& l_;
  std::vector<std::int64_t> launched_;  // by call: the GPU event, or kNone
  std::vector<HostPause> pauses_;
  std::vector<Dependency> found_;
};

}  // namespace

std::vector<Dependency> host_order(const Launches& launches) { return HostReader(launches).read(); }

}  // namespace moeline
