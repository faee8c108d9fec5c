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

/// By GPU event and by call.
struct Release {
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

}  // namespace moeline
