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
/// How far ahead the winner is over draws, or why there are none; "" where none were asked for.
[[nodiscard]] std::string band_line(const Decision& decision, const WinReason& reason);
[[nodiscard]] std::vector<std::string> sure_lines(const Decision& decision);
/// Who cannot win and why: each reason of a setting once.
[[nodiscard]] std::vector<std::string> refusal_lines(const Decision& decision);
/// Of each setting how much is extrapolated where that is most, and which kernels.
[[nodiscard]] std::vector<std::string> extrapolation_lines(const Decision& decision);
/// The point that was asked at which the largest share of the setting's kernels' time is extrapolated; null: it is not
/// simulated anywhere.
[[nodiscard]] const DecidePoint* most_extrapolated(const Decision& decision, std::size_t setting);

}  // namespace moeline
