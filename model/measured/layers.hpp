// The layers of a measured run, and the steps around them.
#pragma once

#include <string>
#include <vector>

#include "measured/breakdown.hpp"
#include "timeline/phases.hpp"
#include "trace/step_windows.hpp"

namespace moeline {

/// A step of a server or a training loop on one GPU.
struct StepUse {
  TraceStep step;
  Time start{}, end{};  ///< as StepWindow has them
  Breakdown times;      ///< of all streams between them
  std::size_t layers = 0;
};

/// One layer: from its first phase of computation to the end of its last, and on to the end of its communication, until
/// the next layer computes; or, without phases, one repetition of the
/// sequence of kernels that repeats on the stream that computes most.
struct LayerWindow {
  std::uint32_t layer = 0;  ///< by position; in a step, in that step
  std::int64_t step = -1;   ///< index into the rank's steps, where layers repeat in steps; else -1
  Time start{}, end{};
  Breakdown times;
  Time barrier{}, transfer{};  ///< sums of durations
};

/// `busy` is united, and of the rank whose phases these are.
[[nodiscard]] std::vector<LayerWindow> layers_of_phases(const std::vector<PhaseTimes>& phases, const BusyTimes& busy);

/// Of the sequence of events on one stream, by start.
[[nodiscard]] std::vector<LayerWindow> repeated_layers(const Trace& trace, const std::vector<std::uint32_t>& events,
                                                       const BusyTimes& busy);

/// Of steps of one GPU.
[[nodiscard]] std::vector<StepUse> step_uses(const Trace& trace, const std::vector<StepWindow>& steps,
                                             const BusyTimes& busy);
[[nodiscard]] std::vector<LayerWindow> layers_of_steps(const std::vector<StepWindow>& steps, const BusyTimes& busy);

/// Barriers and transfers belong to the layer in which they start. REQUIRES layers and events by start.
void add_communication(const Trace& trace, const Interpretation& meaning, const std::vector<std::uint32_t>& events,
                       std::vector<LayerWindow>& layers);

}  // namespace moeline
