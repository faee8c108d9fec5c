// Random programs of hosts and GPUs whose timeline is known under every change of their times: what replays of their
// traces are held against.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/support/dice.hpp"
#include "tests/support/trace_text.hpp"

namespace moeline::testing {

/// Factors of what a program takes.
struct Changed {
  double gemm = 1, transfer = 1, copy = 1, host = 1;
};

class KnownProgram {
 public:
  /// `seed` decides how many processes, threads and streams there are, and what each thread does.
  explicit KnownProgram(std::uint64_t seed) : dice_(seed) {
    const std::uint64_t processes = 1 + dice_.below(2);
    for (std::uint64_t process = 0; process < processes; ++process) {
      const std::uint64_t threads = 1 + dice_.below(2);
      for (std::uint64_t thread = 0; thread < threads; ++thread) write_thread(static_cast<int>(process), threads == 1);
    }
    (void)run({}, true);
  }

  /// First start to last end of all kernels, in us.
  [[nodiscard]] double span_us(const Changed& changed) {
    const std::vector<Ran> kernels = run(changed, false).kernels;
    double first = kernels.front().start, last = 0;
    for (const Ran& each : kernels) {
      first = std::min(first, each.start);
      last = std::max(last, each.end);
    }
    return last - first;
  }

  /// As a profiler writes it. `stated`: with its records of synchronisation, which say who waits for whom.
  [[nodiscard]] std::string trace(bool stated) {
    const Result result = run({}, false);
    std::string events;
    const auto add = [&](const std::string& event) { events += (events.empty() ? "" : ",\n") + event; };
    for (const Ran& each : result.kernels) {
      const bool copies = each.what == What::copy;
      add(slice(copies ? "gpu_memcpy" : "kernel", name_of(each.what),
                fmt::format(R"("pid": {}, "tid": {})", each.process, each.stream), at(each.start, each.end),
                fmt::format(R"("stream": {}, "correlation": {})", each.stream, each.correlation)));
    }
    for (const Called& each : result.calls) {
      const std::string track = fmt::format(R"("pid": {}, "tid": {})", 1000 + each.process, 100 + each.thread);
      const std::string of =
          each.stream >= 0 && stated && each.op == Do::sync_stream ? fmt::format(R"(, "stream": {})", each.stream) : "";
      add(slice("cuda_runtime", call_name(each.op), track, at(each.start, each.end),
                fmt::format(R"("correlation": {}{})", each.correlation, of)));
      if (stated && (each.op == Do::wait || each.op == Do::sync_event)) add(sync_record(each));
    }
    return R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}], "traceEvents": [)" + events +
           "]}";
  }

 private:
  enum class What : std::uint8_t { gemm, attention, transfer, copy };
  enum class Do : std::uint8_t { launch, blocking_copy, graph, record, wait, sync_stream, sync_event, sync_device };

  struct Kernel {
    What what = What::gemm;
    double us = 0;
    double part = -1;  ///< starts when so much of the one before it on its stream is done; -1: when all before are
  };
  struct Op {
    Do what = Do::launch;
    double host_us = 0;  ///< of the host itself, since the call before
    int stream = 0;
    int event = 0;
    std::vector<Kernel> kernels{};
  };
  struct Thread {
    int process = 0;
    std::vector<Op> ops;
  };
  struct Ran {
    What what;
    int process, stream, correlation;
    double start, end;
  };
  struct Called {
    Do op;
    int process, thread, stream, correlation;
    double start, end;
    int record = -1;  ///< of a wait: the correlation of what it waits for
    int source = -1;  ///< and its stream
  };
  struct Result {
    std::vector<Ran> kernels;
    std::vector<Called> calls;
  };
  struct Stream {
    double all_end = 0, before_last_end = 0, waits = 0;
    double last_start = 0, last_us = 0;
  };
  struct Recorded {
    double at = 0;
    int correlation = -1, stream = -1;
  };

  static constexpr double kLatency = 5, kCall = 2;

  Kernel any_kernel(bool may_overlap) {
    constexpr std::array kWhat = {What::gemm, What::gemm, What::attention, What::transfer};
    Kernel kernel{kWhat[dice_.below(kWhat.size())], static_cast<double>(4 * (1 + dice_.below(60)))};
    if (may_overlap && dice_.percent(30)) kernel.part = 0.25 * static_cast<double>(1 + dice_.below(3));
    return kernel;
  }

  // Its streams are its own, as a program's are. Only where it is `alone` does it wait for the whole device: what other
  // threads have launched until then would depend on who was faster.
  void write_thread(int process, bool alone) {
    const int first = 7 + 10 * static_cast<int>(threads_.size());
    const auto streams = static_cast<int>(1 + dice_.below(3));
    const auto any_stream = [&] { return first + static_cast<int>(dice_.below(static_cast<std::uint64_t>(streams))); };
    const bool overlaps = dice_.percent(50);
    Thread thread{process, {}};
    std::map<int, int> recorded;  // events by stream
    thread.ops.push_back({Do::launch, 4, first, 0, {any_kernel(false)}});
    for (int i = 0; i < 40; ++i) {
      Op op{Do::launch, static_cast<double>(4 * (1 + dice_.below(dice_.percent(10) ? 40 : 2))), any_stream()};
      const std::uint64_t chance = dice_.below(100);
      if (chance < 60) {
        op.kernels = {any_kernel(overlaps)};
      } else if (chance < 65) {
        op.what = Do::blocking_copy;
        op.kernels = {{What::copy, static_cast<double>(4 * (1 + dice_.below(10)))}};
      } else if (chance < 72) {
        op.what = Do::graph;
        for (int k = 0; k < 4; ++k) op.kernels.push_back(any_kernel(overlaps && k > 0));
      } else if (chance < 90 && streams > 1) {
        write_wait(thread, op, first, streams);
        continue;
      } else if (chance < 94) {
        op.what = Do::sync_stream;
      } else if (chance < 96 && alone) {
        op.what = Do::sync_device;
      } else if (!thread.ops.empty()) {
        write_event_sync(thread, op);
        continue;
      }
      if (op.kernels.empty() && (op.what == Do::launch)) op.kernels = {any_kernel(false)};
      thread.ops.push_back(op);
    }
    thread.ops.push_back({Do::launch, 4, first, 0, {any_kernel(false)}});
    threads_.push_back(std::move(thread));
  }

  void write_wait(Thread& thread, Op op, int first, int streams) {
    const int other = first + (op.stream - first + 1) % streams;
    thread.ops.push_back({Do::record, op.host_us, other, ++events_, {}});
    op.what = Do::wait;
    op.event = events_;
    op.host_us = 4;
    thread.ops.push_back(op);
    thread.ops.push_back({Do::launch, 4, op.stream, 0, {any_kernel(false)}});
  }

  void write_event_sync(Thread& thread, Op op) {
    thread.ops.push_back({Do::record, op.host_us, op.stream, ++events_, {}});
    thread.ops.push_back({Do::sync_event, 4, op.stream, events_, {}});
  }

  static double factor(What what, const Changed& changed) {
    return what == What::gemm       ? changed.gemm
           : what == What::transfer ? changed.transfer
           : what == What::copy     ? changed.copy
                                    : 1;
  }

  // A kernel may overlap the one before it only where that, and nothing later, lets it start as written: `decide` takes
  // back what does not.
  static double start_of(Kernel& kernel, double arrives, const Stream& stream, bool decide) {
    const double trigger = std::max(stream.before_last_end, stream.last_start + kernel.part * stream.last_us);
    const double other = std::max(arrives, stream.waits);
    const bool binds = other <= trigger && trigger == stream.last_start + kernel.part * stream.last_us;
    if (kernel.part >= 0 && decide && !(binds && trigger < stream.all_end && stream.last_us > 0)) kernel.part = -1;
    return std::max(other, kernel.part >= 0 ? trigger : stream.all_end);
  }

  Result run(const Changed& changed, bool decide) {
    Result result;
    std::map<std::pair<int, int>, Stream> streams;  // by process and number
    std::map<int, Recorded> recorded;
    std::vector<double> clock(threads_.size(), 0);
    std::vector<std::size_t> next(threads_.size(), 0);
    for (std::size_t i = 0; i < threads_.size(); ++i) clock[i] = 3 * static_cast<double>(i);
    for (int correlation = 1;; ++correlation) {
      const std::size_t t = earliest(clock, next, changed);
      if (t == threads_.size()) return result;
      Thread& thread = threads_[t];
      Op& op = thread.ops[next[t]++];
      const double start = clock[t] + host_us(t, next[t] - 1, changed);
      Called call{op.what, thread.process, static_cast<int>(t), op.stream, correlation, start, start};
      Stream& stream = streams[{thread.process, op.stream}];
      double returned = start;
      for (Kernel& kernel : op.kernels) {
        const double begins = start_of(kernel, start + kLatency * changed.host, stream, decide);
        const double us = kernel.us * factor(kernel.what, changed);
        stream.before_last_end = std::max(stream.before_last_end, stream.last_us > 0 ? last_end(stream) : 0);
        stream.last_start = begins;
        stream.last_us = us;
        stream.all_end = std::max(stream.all_end, begins + us);
        result.kernels.push_back({kernel.what, thread.process, op.stream, correlation, begins, begins + us});
        if (op.what == Do::blocking_copy) returned = begins + us;
      }
      if (op.what == Do::record) recorded[op.event] = {stream.all_end, correlation, op.stream};
      if (op.what == Do::wait || op.what == Do::sync_event) {
        const Recorded& of = recorded[op.event];
        call.record = of.correlation;
        call.source = of.stream;
        if (op.what == Do::wait) stream.waits = std::max(stream.waits, of.at);
        if (op.what == Do::sync_event) returned = std::max(returned, of.at);
      }
      if (op.what == Do::sync_stream) returned = std::max(returned, stream.all_end);
      if (op.what == Do::sync_device) {
        for (const auto& [key, each] : streams) {
          if (key.first == thread.process) returned = std::max(returned, each.all_end);
        }
      }
      clock[t] = returned;
      call.end = std::max(returned, start + (op.kernels.empty() ? 0 : kCall * changed.host));
      result.calls.push_back(call);
    }
  }

  // What lies before a thread's first launch is no time of the program.
  [[nodiscard]] double host_us(std::size_t thread, std::size_t op, const Changed& changed) const {
    return threads_[thread].ops[op].host_us * (op == 0 ? 1 : changed.host);
  }

  static double last_end(const Stream& stream) { return stream.last_start + stream.last_us; }

  [[nodiscard]] std::size_t earliest(const std::vector<double>& clock, const std::vector<std::size_t>& next,
                                     const Changed& changed) const {
    std::size_t best = threads_.size();
    double when = 0;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      if (next[t] == threads_[t].ops.size()) continue;
      const double at = clock[t] + host_us(t, next[t], changed);
      if (best == threads_.size() || at < when) {
        best = t;
        when = at;
      }
    }
    return best;
  }

  static std::string at(double start, double end) {
    return times(fmt::format("{:.3f}", start), fmt::format("{:.3f}", end - start));
  }
  static std::string name_of(What what) {
    return what == What::gemm        ? "sm90_xmma_gemm_bf16"
           : what == What::attention ? "flash_fwd_kernel"
           : what == What::transfer  ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
                                     : "Memcpy DtoH (Device -> Pageable)";
  }
  static std::string call_name(Do what) {
    switch (what) {
      case Do::launch:
        return "cudaLaunchKernel";
      case Do::blocking_copy:
        return "cudaMemcpyAsync";
      case Do::graph:
        return "cudaGraphLaunch";
      case Do::record:
        return "cudaEventRecord";
      case Do::wait:
        return "cudaStreamWaitEvent";
      case Do::sync_stream:
        return "cudaStreamSynchronize";
      case Do::sync_event:
        return "cudaEventSynchronize";
      case Do::sync_device:
        break;
    }
    return "cudaDeviceSynchronize";
  }
  static std::string sync_record(const Called& call) {
    const bool waits = call.op == Do::wait;
    return slice("cuda_sync", waits ? "Stream Wait Event" : "Event Sync",
                 fmt::format(R"("pid": {}, "tid": {})", call.process, call.stream), at(call.start, call.end),
                 fmt::format(R"("stream": {}, "correlation": {}, "wait_on_stream": {}, )"
                             R"("wait_on_cuda_event_record_corr_id": {})",
                             waits ? call.stream : -1, call.correlation, call.source, call.record));
  }

  Dice dice_;
  int events_ = 0;
  std::vector<Thread> threads_;
};

}  // namespace moeline::testing
