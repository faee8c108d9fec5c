// Who was busy: unions of GPU events by kind of work. And what stood still, and why.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "measured/release.hpp"
#include "timeline/intervals.hpp"
#include "trace/interpret.hpp"

namespace moeline {

enum class Work : std::uint8_t { compute, communication, neither };
[[nodiscard]] Work work_of(KernelClass kernel_class);

[[nodiscard]] inline Time time_of(std::int64_t ns) { return std::chrono::nanoseconds(ns); }
[[nodiscard]] inline Interval interval_of(const GpuEvent& e) { return {time_of(e.start_ns), time_of(e.end_ns)}; }
[[nodiscard]] inline Time length_of(const GpuEvent& event) { return time_of(event.end_ns - event.start_ns); }

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

/// Intervals of events by kind of work.
struct BusyTimes {
  std::vector<Interval> compute, communication, any;

  void add(const Interval& interval, Work work);
  /// Makes each of the three sorted and disjoint.
  void unite_all();
  /// The parts inside a window. REQUIRES unite_all().
  [[nodiscard]] BusyTimes inside(const Interval& window) const;
  /// Of communication what `hiding` does not cover is exposed. REQUIRES unite_all().
  [[nodiscard]] Breakdown breakdown(Time span, const std::vector<Interval>& hiding) const;
  [[nodiscard]] Breakdown breakdown(Time span) const { return breakdown(span, compute); }
};

/// First start and last end of events, given by index. REQUIRES at least one.
[[nodiscard]] Interval limits_of(const Trace& trace, const std::vector<std::uint32_t>& events);

// What stood still and why: times without a kernel on the streams that compute.

/// Why no kernel ran on the streams that compute.
enum class GapCause : std::uint8_t {
  launch,         ///< the host had not launched the next kernel
  host_wait,      ///< the same, because the host itself had waited for the GPU
  communication,  ///< the next kernel waited for a communication kernel
  other_stream,   ///< it waited for a kernel or a copy of another stream
  between,        ///< the usual pause between two kernels
  unexplained,    ///< longer, and without a reason in the trace
  after_last,     ///< there is no next kernel: other streams still ran
};
inline constexpr int kGapCauses = static_cast<int>(GapCause::after_last) + 1;
[[nodiscard]] const std::string& name_of(GapCause cause);

struct Gap {
  GapCause cause = GapCause::between;
  Time length{};
  std::uint32_t event = 0;       ///< that ended it; of after_last the event that ran until the end of the span
  std::int64_t waited_for = -1;  ///< GPU event, where the cause is communication or another stream
};

/// In order of time: all of `span` in which none of the streams is busy, so that the gaps and what the streams are busy
/// add up to it. `events` are those of one rank, by start.
[[nodiscard]] std::vector<Gap> gaps_of(const Measured& measured, const Release& release,
                                       const std::vector<std::uint32_t>& events, const std::set<std::uint32_t>& streams,
                                       const Interval& span);

}  // namespace moeline
