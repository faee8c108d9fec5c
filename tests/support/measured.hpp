// Measured traces as tests ask about them: DeepSeek's, and small ones written call by call.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/simulate.hpp"
#include "measured/analysis.hpp"
#include "measured/replay.hpp"
#include "tests/support/data.hpp"
#include "tests/support/trace_text.hpp"

namespace moeline::testing {

/// DeepSeek's training trace, understood once. REQUIRES present(training_trace()).
inline const Measured& training() {
  static const Measured measured = understand(read_trace(training_trace()));
  return measured;
}

inline const TracePhase* phase_of(const Measured& m, Node node) {
  const std::int32_t phase = node.is_call ? kNoPhase : m.meaning.places[node.index].phase;
  return phase == kNoPhase ? nullptr : &m.meaning.phases[static_cast<std::size_t>(phase)];
}

/// "attn(F)", or the kernel's name where it has no phase, or "host".
inline std::string shown(const Measured& m, Node node) {
  if (node.is_call) return "host";
  const TracePhase* phase = phase_of(m, node);
  return phase == nullptr ? m.trace.name(m.trace.gpu_events[node.index]) : phase->name;
}

/// "before -> after" of every edge with this reason, in order of text.
inline std::vector<std::string> edges(const Measured& m, Reason reason) {
  std::vector<std::string> found;
  for (const Dependency& edge : m.dependencies) {
    if (edge.reason == reason) found.push_back(shown(m, edge.before) + " -> " + shown(m, edge.after));
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline Time replayed_span(const Measured& m, const WhatIf& what_if = {}) {
  const ReplayGraph replay = replay_graph(m, what_if);
  return gpu_span(replay, simulate(replay.graph));
}

/// a / b - 1
inline double change(Time a, Time b) { return to_us(a) / to_us(b) - 1; }

/// A trace written call by call; times in us. Streams 7 and 23 compute, 27 communicates. The host has one thread.
class SmallTrace {
 public:
  /// A kernel, and its launch of 2 us.
  SmallTrace& kernel(const std::string& name, int stream, int launched, int start, int end,
                     const std::string& args = "") {
    ++correlation_;
    call("cudaLaunchKernel", launched, 2, correlated());
    return on_gpu("kernel", name, stream, start, end, correlated() + (args.empty() ? "" : ", " + args));
  }
  /// A GPU event without a launch.
  SmallTrace& on_gpu(const std::string& cat, const std::string& name, int stream, int start, int end,
                     const std::string& args = "") {
    const std::string s = std::to_string(stream);
    return add(slice(cat, name, R"("pid": 0, "tid": )" + s, duration(start, end - start),
                     R"("stream": )" + s + (args.empty() ? "" : ", " + args)));
  }
  SmallTrace& call(const std::string& name, int ts, int dur, const std::string& args = "") {
    return add(slice("cuda_runtime", name, kMainThread, duration(ts, dur), args));
  }
  SmallTrace& wait_event(int ts) { return call("cudaStreamWaitEvent", ts, 1); }
  SmallTrace& annotation(const std::string& name, int start, int end) {
    return add(range(name, std::to_string(start), std::to_string(end - start)));
  }
  SmallTrace& add(const std::string& event) {
    events_ += (events_.empty() ? "" : ",\n") + event;
    return *this;
  }

  [[nodiscard]] std::string text() const {
    return R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H800", "numSms": 132}], "traceEvents": [)" + events_ +
           "]}";
  }
  [[nodiscard]] Measured understood(const KernelMap& map = {}) const { return understand(read(text()), map); }

 private:
  [[nodiscard]] std::string correlated() const { return R"("correlation": )" + std::to_string(correlation_); }
  static std::string duration(int ts, int dur) { return times(std::to_string(ts), std::to_string(dur)); }

  std::string events_;
  int correlation_ = 0;
};

inline const std::string kDispatch = "deep_ep::internode::dispatch";
inline const std::string kCombine = "deep_ep::internode::combine";
inline const std::string kNotify = "deep_ep::internode::notify_dispatch";

}  // namespace moeline::testing
