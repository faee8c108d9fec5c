// The kernels of one step in order, measured or simulated: two sequences that can be aligned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/learn/kernel_kind.hpp"
#include "experiments/run/run.hpp"
#include "measured/release.hpp"

namespace moeline {

/// A kernel of a trace.
struct ObservedKernel {
  std::uint32_t event = 0;  ///< index into Trace::gpu_events
  KernelKinds kinds;
  /// What it adds to its stream: where it starts before the one in front of it ends (programmatic dependent launch),
  /// the time from that end to its own.
  Time added{};
  Time gap{};  ///< in front of it, in which its stream stands still
  /// It waited: its launch came late, or the gap is far longer than most. Its own gap is not known then, and counts as
  /// none.
  bool is_late = false;
};

/// A kernel that a scenario has in its place.
struct SimulatedKernel {
  std::uint32_t kernel = 0;  ///< index into Program::kernels
  std::uint32_t layer = 0;   ///< by position; those of a step that are no layers stand before and behind them
  KernelKind kind = KernelKind::plain;
  Time added{}, gap{};  ///< from start to end, and its launch gap
  Time end{};
};

/// One step of a trace.
struct ObservedStep {
  std::string kind;         ///< what steps of the same work are called; empty: the trace has none, this is all of it
  std::size_t of_kind = 1;  ///< steps that the trace has of it, of which this is the median one
  std::vector<std::string> annotations;  ///< its own first, then those that overlap it in time, each name once
  std::vector<ObservedKernel> kernels;   ///< by start
  bool in_graphs = false;  ///< all of them were launched by a few calls; kernels around those are left out
  bool knows_launches = false;
  std::size_t around = 0;  ///< kernels of the step that are left out
  Time start{}, span{};    ///< of the kernels, pauses included
  Time paused{};           ///< of that, stretches in which none runs and that no kernel is charged for
  Time host{};             ///< of the threads that launched them, without what they waited for
};

/// Of the kind of steps that takes most of the trace the median one, on its first GPU. Throws SpecError, with `file`,
/// where the trace has several GPUs.
[[nodiscard]] ObservedStep observed_step(const Measured& measured, const std::string& file);

/// Of rank 0, by start.
[[nodiscard]] std::vector<SimulatedKernel> simulated_kernels(const Run& run);

/// What counts as a kernel's time: with the gap in front of it, which an operator has as often as it has kernels.
template <class Kernel>
[[nodiscard]] Time charged(const Kernel& kernel) {
  return kernel.added + kernel.gap;
}

}  // namespace moeline
