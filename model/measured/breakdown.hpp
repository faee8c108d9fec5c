// Who was busy: unions of GPU events by kind of work.
#pragma once

#include <vector>

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

}  // namespace moeline
