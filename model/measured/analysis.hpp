// The layers of a measured run, and the steps around them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measured/breakdown.hpp"
#include "measured/copies.hpp"
#include "measured/counterfactuals.hpp"
#include "measured/hta.hpp"
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
[[nodiscard]] std::vector<LayerWindow> repeated_layers(const Trace& trace, const Interpretation& meaning,
                                                       const std::vector<std::uint32_t>& events, const BusyTimes& busy);

/// Of steps of one GPU.
[[nodiscard]] std::vector<StepUse> step_uses(const Trace& trace, const std::vector<StepWindow>& steps,
                                             const BusyTimes& busy);
[[nodiscard]] std::vector<LayerWindow> layers_of_steps(const std::vector<StepWindow>& steps, const BusyTimes& busy);

/// Barriers and transfers belong to the layer in which they start. REQUIRES layers and events by start.
void add_communication(const Trace& trace, const Interpretation& meaning, const std::vector<std::uint32_t>& events,
                       std::vector<LayerWindow>& layers);

// What a measured trace says about itself: who was busy when, what stood still and why.

/// The same of one stream: idle is the rank's span less what runs on it, overlapped and exposed are of its
/// communication against the compute of the whole rank.
struct StreamBreakdown {
  std::uint32_t stream = 0;
  std::size_t events = 0;
  Breakdown times;
};

struct ClassUse {
  KernelClass kernel_class = KernelClass::unclassified;
  std::size_t count = 0;
  Time sum{};         ///< of durations
  Time busy{};        ///< union
  double flops = 0;   ///< of the kernels whose shapes are known
  Time flops_time{};  ///< their durations
  /// Of the events whose bytes are known: messages of communication, and of copies and sets what they read and write in
  /// the GPU's own memory. Copies over a link are not among them: RankAnalysis::copies has those.
  double bytes = 0;
  Time bytes_time{};
};

/// A phase that communicates.
struct Transfer {
  PhaseTimes times;
  Time other{};      ///< its kernels that are neither barrier nor transfer
  double bytes = 0;  ///< of its transfers where the trace says so (NCCL)
};

struct RankAnalysis {
  std::uint32_t rank = 0;
  Breakdown times;
  HtaBreakdown hta;
  std::vector<StreamBreakdown> streams;
  std::vector<ClassUse> classes;               ///< longest first
  std::vector<CopyUse> copies;                 ///< those of class copy, by what they pass through
  std::vector<Gap> gaps;                       ///< on the streams that compute, longest first
  std::vector<std::uint32_t> compute_streams;  ///< those with a twentieth of the compute, or more
  Time compute_streams_busy{};                 ///< any of them; with the gaps it adds up to the span
  std::size_t kernels = 0, kernels_without_launch = 0;
  std::vector<PhaseTimes> phases;
  std::vector<Transfer> transfers;
  std::vector<StepUse> steps;        ///< by start
  std::vector<StepKind> step_kinds;  ///< of these
  std::vector<LayerWindow> layers;
  bool layers_by_repetition = false;
};

struct UnclassifiedKernel {
  std::string name;
  std::size_t count = 0;
  Time sum{};
};

struct Analysis {
  std::vector<RankAnalysis> ranks;  ///< one per GPU of the trace
  std::size_t gpu_events = 0;
  std::size_t attributed = 0;                    ///< GPU events that have a phase
  std::vector<UnclassifiedKernel> unclassified;  ///< longest first
};

[[nodiscard]] Analysis analyze(const Measured& measured);

struct GapSum {
  std::size_t count = 0;
  Time sum{};
};
[[nodiscard]] GapSum sum_of(const RankAnalysis& rank, GapCause cause);

}  // namespace moeline
