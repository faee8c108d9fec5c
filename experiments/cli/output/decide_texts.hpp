// What is said of a decision in sentences.
#pragma once

#include <string>
#include <vector>

#include "experiments/decide/decide.hpp"

namespace moeline {

/// "by tpot_ms, lower wins, along workload.concurrency, where ..."
[[nodiscard]] std::string title_of(const Decision& decision);
/// "at workload.concurrency 64, kv_len 4096"; "" of one point.
[[nodiscard]] std::string place_of(const Decision& decision, const DecidePoint& point);
/// Who wins on which stretch, in a sentence for each value of the second axis.
[[nodiscard]] std::vector<std::string> turn_lines(const Decision& decision);
[[nodiscard]] std::string reason_line(const Decision& decision, const WinReason& reason);
[[nodiscard]] std::string band_line(const Band& band, int samples);
[[nodiscard]] std::vector<std::string> sure_lines(const Decision& decision);
/// The point that was asked at which the largest share of the setting's kernels' time is extrapolated; null: it is not
/// simulated anywhere.
[[nodiscard]] const DecidePoint* most_extrapolated(const Decision& decision, std::size_t setting);

}  // namespace moeline
