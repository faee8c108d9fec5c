// When the order of a trace allowed each event to start, and what of its waiting that does not explain.
#pragma once

#include <vector>

#include "base/time.hpp"
#include "measured/dependencies.hpp"

namespace moeline {

/// A trace, what its events are, and the order that bound them.
struct Measured {
  Trace trace;
  Interpretation meaning;
  std::vector<Dependency> dependencies;
};
[[nodiscard]] Measured understand(Trace trace, const KernelMap& map = {});

/// By GPU event and by call. The latency of a launch is that of launch_latencies_ns; of one whose kernel waited for
/// nothing else and started 20 us later still, it is the whole time until then, if others of this trace take a quarter
/// as long at least, or longer. Else the launch was over when its call returned, and something kept the kernel that the
/// trace does not show.
struct Release {
  std::vector<std::int64_t> latency_ns;         ///< by call
  std::vector<std::int64_t> event_ns, call_ns;  ///< the last dependency was met; 0 where there is none
  std::vector<std::int64_t> binding;            ///< by event: which one that was, an index; -1: it had none
  std::vector<std::int64_t> call_binding;       ///< the same by call
};
[[nodiscard]] Release release_times(const Measured& measured);

/// An event that stood still although every known dependency was met.
struct Unexplained {
  std::uint32_t event = 0;
  std::int64_t wait_ns = 0;
  /// Persistent kernels of other streams had been given the SMs it needed, until it started, and by chance: in most
  /// layers the same kernel did not wait so. That is no order: with other times they would not have met.
  bool for_sms = false;
};
/// Waits of 20 us and more, longest first.
[[nodiscard]] std::vector<Unexplained> unexplained_waits(const Measured& measured, const Release& release);
inline constexpr std::int64_t kUnexplainedNs = 20'000;

// How long each GPU event of a trace stood still, and from when that counts.

/// The time in front of an event: what it started later than whatever released it.
struct Pause {
  /// Stays whatever becomes of gaps. It lies before the GPU's first event, outside the span, which would grow if that
  /// event came sooner; or it is the distance to the anchor.
  std::int64_t given_ns = 0;
  std::int64_t gap_ns = 0;
  /// Of an event that waited for nothing known, such as the first of a stream whose launch is not in the trace: the
  /// event of its GPU that started last before it, to whose start it keeps its distance. Left where it is in time, it
  /// would stretch a run that a change makes shorter. -1: it has a release, or is the first of its GPU.
  std::int64_t anchor = -1;
};

/// By GPU event. What events waited for SMs is left out.
[[nodiscard]] std::vector<Pause> pauses_of(const Measured& measured, const Release& release);

}  // namespace moeline
