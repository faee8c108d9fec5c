// Why each kernel of a measured trace did not start earlier: the order in which it had to run, each edge with its
// reason.
#pragma once

#include <string>
#include <vector>

#include "trace/interpret.hpp"

namespace moeline {

enum class Reason : std::uint8_t {
  stream_order,  ///< a stream is a FIFO
  launch,        ///< a kernel starts after the host has launched it
  host_order,    ///< the host makes one call after the other
  host_wait,     ///< the host waited for a GPU event: a synchronising call, or a pause that ends where the event does
  event_wait,    ///< cudaStreamWaitEvent
  flow,          ///< an arrow of the trace from one GPU event to another
  start_time,    ///< no call says so, but the kernel starts, again and again, just when one of another stream ends
};
inline constexpr int kReasons = static_cast<int>(Reason::start_time) + 1;
[[nodiscard]] const std::string& name_of(Reason reason);

/// How sure a dependency is. What the trace states, or what cannot be otherwise (the order of a stream), has `of` 0;
/// what was inferred has how many times its kernel showed it, of so many that could have.
struct Evidence {
  std::uint32_t seen = 0, of = 0;
  [[nodiscard]] bool is_stated() const { return of == 0; }
};

/// A GPU event, or a call of the host.
struct Node {
  std::uint32_t index = 0;  ///< into Trace::gpu_events or Trace::calls
  bool is_call = false;
};

/// What of `before` allows what of `after`.
enum class Order : std::uint8_t {
  end_to_start,
  start_to_start,  ///< calls of the host; and what an arrow of the trace says so of
  part_to_start,   ///< of kernels that overlap (programmatic dependent launch): as far into `before` as it was
  end_to_end,      ///< `after` may end only when `before` has: what an arrow says so of
};

struct Dependency {
  Node before, after;
  Reason reason = Reason::stream_order;
  Order order = Order::end_to_start;
  Evidence evidence{};
  std::int64_t host_ns = 0;  ///< to a call: the host's own time in between, without what it waited for
};

/// What is known of a trace's order.
///
/// A trace does not say which event a cudaStreamWaitEvent waits for, nor on which stream (unless the profiler wrote
/// synchronisation events, which are then taken at their word). Each call is read as one edge:
///  - who waits: the first kernel that some stream is given after the call and before the next such call; where
///    nothing is launched in between, the next kernel on another stream than that of the last launch;
///  - for whom: on another stream, the last kernel launched before the call, or the last one of an earlier phase: the
///    youngest that had ended whenever the waiting kernel started, in nine of ten layers of the trace at least. What
///    layers refute holds in none;
///  - of several readings, the one that explains most of the time for which the waiting kernel stood still without
///    another reason; else the first in launch order that says something new.
/// Start-time evidence is asked for last, of kernels that still waited without a reason.
[[nodiscard]] std::vector<Dependency> dependencies(const Trace& trace, const Interpretation& meaning);

/// By call: time from its start until what it launched could start, in ns. That of the quickest hundredth of all
/// launches (others have to wait for more than the launch), or, where its own event started sooner, that event's.
[[nodiscard]] std::vector<std::int64_t> launch_latencies_ns(const Trace& trace);

}  // namespace moeline
