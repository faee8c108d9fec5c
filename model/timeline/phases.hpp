// When each phase ran: one table, filled from a prediction or from a measured trace, so that both can be compared.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/timeline.hpp"
#include "trace/interpret.hpp"

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
  Time transfer{};  ///< sum of its other kernels that communicate
  Time wait{};      ///< of a prediction: that its stream waited, before kernels of it, for communication

  [[nodiscard]] Time span() const { return end - start; }
  /// Barriers and transfers are most of its busy time: a phase of tensor parallelism that ends with an all-reduce
  /// computes, and a combine that holds a cast communicates.
  [[nodiscard]] bool is_communication() const { return 2 * (barrier + transfer) > busy; }
};

/// Tells the phases of one rank apart.
using PhaseKey = std::tuple<std::uint32_t, std::string, std::uint32_t>;  // layer, phase, micro-batch
[[nodiscard]] inline PhaseKey key_of(const PhaseTimes& phase) { return {phase.layer, phase.phase, phase.micro_batch}; }

/// By start, then stream; of all ranks, or of one.
[[nodiscard]] std::vector<PhaseTimes> phase_times(const TaskGraph& graph, const Timeline& timeline,
                                                  std::optional<std::uint32_t> rank = std::nullopt);

/// Empty where the trace has no phases.
[[nodiscard]] std::vector<PhaseTimes> phase_times(const Trace& trace, const Interpretation& meaning);

/// The same by annotations. Throws SpecError when the trace has no annotated kernels.
[[nodiscard]] std::vector<PhaseTimes> phase_times(const Trace& trace);

}  // namespace moeline
