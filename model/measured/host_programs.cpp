#include "measured/host_programs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace moeline {
namespace {

constexpr std::size_t kMostWaiting = 64;  // threads that wait at once; more are not looked at

using Pair = std::pair<std::uint32_t, std::uint32_t>;

Pair pair_of(std::uint32_t a, std::uint32_t b) { return {std::min(a, b), std::max(a, b)}; }

// Pairs of threads of which one launched while the other waited for the GPU.
std::set<Pair> beside_each_other(const Trace& trace, const std::vector<bool>& launches) {
  std::set<Pair> pairs;
  std::vector<const HostCall*> waiting;
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    const HostCall& call = trace.calls[i];
    std::erase_if(waiting, [&](const HostCall* other) { return other->end_ns <= call.start_ns; });
    for (const HostCall* other : waiting) {
      const bool beside = other->thread != call.thread && other->process == call.process;
      if (launches[i] && beside) pairs.insert(pair_of(other->thread, call.thread));
    }
    if (holds_host(call) && waiting.size() < kMostWaiting) waiting.push_back(&call);
  }
  return pairs;
}

using Streams = std::set<std::pair<std::uint16_t, std::uint32_t>>;

std::map<std::uint32_t, Streams> streams_of_threads(const Trace& trace) {
  std::map<std::uint32_t, Streams> streams;
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.call < 0) continue;
    streams[trace.calls[static_cast<std::size_t>(event.call)].thread].insert({event.gpu, event.stream});
  }
  return streams;
}

std::vector<bool> are_launches(const Trace& trace) {
  std::vector<bool> launches(trace.calls.size(), false);
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.call >= 0) launches[static_cast<std::size_t>(event.call)] = true;
  }
  return launches;
}

struct Program {
  std::uint32_t process = 0;
  std::vector<std::uint32_t> threads;
  Streams streams;
};

bool share_one(const Streams& a, const Streams& b) {
  return std::ranges::any_of(a, [&](const auto& stream) { return b.contains(stream); });
}

// Threads in the order of their first calls.
std::vector<const HostCall*> first_calls(const Trace& trace) {
  std::set<std::uint32_t> seen;
  std::vector<const HostCall*> first;
  for (const HostCall& call : trace.calls) {
    if (seen.insert(call.thread).second) first.push_back(&call);
  }
  return first;
}

class ProgramFinder {
 public:
  explicit ProgramFinder(const Trace& trace)
      : apart_(beside_each_other(trace, are_launches(trace))), streams_(streams_of_threads(trace)) {}

  // Those that launch nothing come last: they join what there is.
  std::map<std::uint32_t, std::uint32_t> find(const std::vector<const HostCall*>& threads) {
    for (const bool launches : {true, false}) {
      for (const HostCall* call : threads) {
        if (streams_.contains(call->thread) == launches) join(*call);
      }
    }
    return std::move(of_thread_);
  }

 private:
  void join(const HostCall& call) {
    const Streams& own = streams_[call.thread];
    const auto fits = std::ranges::find_if(programs_, [&](const Program& program) {
      return program.process == call.process && (own.empty() || share_one(own, program.streams)) &&
             std::ranges::none_of(program.threads,
                                  [&](std::uint32_t other) { return apart_.contains(pair_of(other, call.thread)); });
    });
    of_thread_[call.thread] = static_cast<std::uint32_t>(fits - programs_.begin());
    if (fits == programs_.end()) programs_.push_back({call.process, {}, {}});
    Program& program = programs_[of_thread_[call.thread]];
    program.threads.push_back(call.thread);
    program.streams.insert(own.begin(), own.end());
  }

  std::set<Pair> apart_;
  std::map<std::uint32_t, Streams> streams_;
  std::vector<Program> programs_;
  std::map<std::uint32_t, std::uint32_t> of_thread_;
};

}  // namespace

bool holds_host(const HostCall& call) {
  return call.blocks || call.kind == HostCallKind::synchronize || call.kind == HostCallKind::synchronize_device;
}

std::vector<std::uint32_t> host_programs(const Trace& trace) {
  const std::map<std::uint32_t, std::uint32_t> of_thread = ProgramFinder(trace).find(first_calls(trace));
  std::vector<std::uint32_t> of_call;
  of_call.reserve(trace.calls.size());
  for (const HostCall& call : trace.calls) of_call.push_back(of_thread.at(call.thread));
  return of_call;
}

}  // namespace moeline
