// What stood still and why: times without a kernel on the streams that compute.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "measured/release.hpp"
#include "timeline/intervals.hpp"

namespace moeline {

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
