// FLOPs and bytes of a measured trace's kernels, which profilers rarely write: from the scenario that ran in it.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "schedules/scenario/scenario.hpp"
#include "timeline/phases.hpp"
#include "trace/kernel_class.hpp"

namespace moeline {

/// Sums over the phases of the trace that the scenario knows.
struct ClassShapes {
  KernelClass kernel_class = KernelClass::unclassified;
  std::array<double, kPrecisions> flops{};  ///< by the format of the tensor cores
  double bytes = 0;                         ///< least memory traffic of kernels that compute
  Time time{};                              ///< that they took; 0: all kernels of the class did
};

struct Shapes {
  std::vector<ClassShapes> classes;       ///< by kernel class
  std::map<PhaseKey, double> wire_bytes;  ///< to other nodes, each way
};

/// One more kernel that does the operator's work.
void add_work(const Operator& op, ClassShapes& shapes);

/// Of every class nothing.
[[nodiscard]] Shapes no_shapes();

/// What a trace's phases are parts of.
struct TracedStep {
  int micro_batches = 1;  ///< that its phases are of
  OverlapPlan plan{};     ///< the scenario's, of prefill or decode
};
[[nodiscard]] TracedStep traced_step(const Setup& setup, const std::vector<PhaseTimes>& phases);

/// Of a phase of the trace, in launch order; none where the scenario has no such phase, or does not say what the
/// layer's experts get.
[[nodiscard]] std::vector<Operator> operators_of(const Setup& setup, const PhaseTimes& phase, const TracedStep& step);

/// The scenario has one of the trace's phases.
[[nodiscard]] bool has_phase_of(const Setup& setup, const std::vector<PhaseTimes>& phases);

/// Throws SpecError where no phase of the trace is one of the scenario's.
[[nodiscard]] Shapes shapes_of(const Setup& setup, const std::vector<PhaseTimes>& phases);

}  // namespace moeline
