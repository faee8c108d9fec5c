// What a measured trace says about itself: who was busy when, what stood still and why.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "measured/release.hpp"
#include "timeline/phases.hpp"

namespace moeline {

/// Busy times are unions. Copies and sets of the copy engines are neither compute nor communication.
struct Breakdown {
  Time span{};           ///< first start to last end of all GPU events
  Time idle{};           ///< nothing runs
  Time compute{};        ///< kernels that compute
  Time communication{};  ///< kernels that communicate, barriers included
  Time exposed{};        ///< communication runs and no compute does
  [[nodiscard]] Time non_compute() const { return span - idle - compute; }
  [[nodiscard]] double overlap_fraction() const;  ///< of communication, that during compute
};

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
  double bytes = 0;   ///< of the events whose bytes are known
  Time bytes_time{};
};

/// Why no kernel ran on the streams that compute.
enum class GapCause : std::uint8_t {
  launch,         ///< the host had not launched the next kernel
  host_wait,      ///< the same, because the host itself had waited for the GPU
  communication,  ///< the next kernel waited for a communication kernel
  other_stream,   ///< it waited for a kernel or a copy of another stream
  between,        ///< the usual pause between two kernels
  unexplained,    ///< longer, and without a reason in the trace
};
inline constexpr int kGapCauses = static_cast<int>(GapCause::unexplained) + 1;
[[nodiscard]] const std::string& name_of(GapCause cause);

struct Gap {
  GapCause cause = GapCause::between;
  Time length{};
  std::uint32_t event = 0;       ///< that ended it
  std::int64_t waited_for = -1;  ///< GPU event, where the cause is communication or another stream
};

/// A phase that communicates.
struct Transfer {
  PhaseTimes times;
  Time other{};      ///< its kernels that are neither barrier nor transfer
  double bytes = 0;  ///< of its transfers where the trace says so (NCCL)
};

/// One repetition of the program: of a layer's first compute phase to the end of its last, or, without phases, of the
/// sequence of kernels that repeats.
struct LayerWindow {
  std::uint32_t layer = 0;
  Time start{}, end{};
  Breakdown times;
  Time barrier{}, transfer{};  ///< sums of durations
};

struct RankAnalysis {
  std::uint32_t rank = 0;
  Breakdown times;
  Breakdown hta;  ///< communication as HolisticTraceAnalysis sees it: names that begin with nccl
  std::vector<StreamBreakdown> streams;
  std::vector<ClassUse> classes;  ///< longest first
  std::vector<Gap> gaps;          ///< on the streams that compute, longest first
  std::vector<PhaseTimes> phases;
  std::vector<Transfer> transfers;
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

}  // namespace moeline
