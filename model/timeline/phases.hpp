// When each phase ran: one table, filled from a prediction or from a measured trace, so that both can be compared.
#pragma once

#include <string>
#include <vector>

#include "engine/timeline.hpp"
#include "timeline/trace.hpp"

namespace moeline {

/// One phase of one layer on one rank. Its stream is that of its first kernel. Host work does not count.
struct PhaseTimes {
  std::string phase;
  std::uint32_t rank = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t layer = 0;  ///< position in order of execution
  std::uint32_t stream = 0;
  Time start{};     ///< of its first kernel
  Time end{};       ///< of its last
  Time busy{};      ///< union of its kernels
  Time solo{};      ///< sum of their solo times; of a measured trace zero
  Time barrier{};   ///< sum of its barrier kernels
  Time transfer{};  ///< sum of its dispatch and combine kernels

  [[nodiscard]] Time span() const { return end - start; }
  /// Its time is that of a transfer, and of the other ranks it waits for.
  [[nodiscard]] bool is_communication() const { return transfer > Time::zero(); }
};

/// By start, then stream.
[[nodiscard]] std::vector<PhaseTimes> phase_times(const TaskGraph& graph, const Timeline& timeline);

/// Annotations of one name, layer and micro-batch are one phase: that of a low-latency transfer is split where other
/// work stands between issue and receive. Where an annotation does not name them (traces that are not ours), the layer
/// is its position among those of the same name, of which ones that overlap in time count once. Kernels are told apart
/// by DeepEP's names. Throws SpecError when the trace has no annotated kernels.
[[nodiscard]] std::vector<PhaseTimes> phase_times(const Trace& trace);

}  // namespace moeline
