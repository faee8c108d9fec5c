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

struct Program {
  std::uint32_t process = 0;
  std::vector<std::uint32_t> threads;
};

}  // namespace

bool holds_host(const HostCall& call) {
  return call.blocks || call.kind == HostCallKind::synchronize || call.kind == HostCallKind::synchronize_device;
}

std::vector<std::uint32_t> host_programs(const Trace& trace, const std::vector<bool>& launches) {
  const std::set<Pair> apart = beside_each_other(trace, launches);
  std::vector<Program> programs;
  std::map<std::uint32_t, std::uint32_t> of_thread;
  std::vector<std::uint32_t> of_call;
  for (const HostCall& call : trace.calls) {
    const auto [known, is_new] = of_thread.try_emplace(call.thread);
    if (is_new) {
      const auto fits = std::find_if(programs.begin(), programs.end(), [&](const Program& program) {
        return program.process == call.process && std::ranges::none_of(program.threads, [&](std::uint32_t other) {
                 return apart.contains(pair_of(other, call.thread));
               });
      });
      known->second = static_cast<std::uint32_t>(fits - programs.begin());
      if (fits == programs.end()) programs.push_back({call.process, {}});
      programs[known->second].threads.push_back(call.thread);
    }
    of_call.push_back(known->second);
  }
  return of_call;
}

}  // namespace moeline
