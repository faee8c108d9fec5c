// The tables of a report on a serving stack's kernel set, as terminal and page show them.
#pragma once

#include <vector>

#include "base/text_table.hpp"
#include "calib/fit/stack_report.hpp"
#include "experiments/page/page.hpp"

namespace moeline {

inline constexpr const char* kColumns =
    "Held-out: of rows whose whole slice the fit did not see; curve alone: of the same rows without the correction; "
    "in-sample: of the fit to all of them.";
inline constexpr const char* kRepeatability = "How far two times of one OP are apart, which no fit can undercut";

[[nodiscard]] TextTable families_table(const std::vector<FamilyReport>& reports);
[[nodiscard]] TextTable worst_table(const std::vector<FamilyReport>& reports);
[[nodiscard]] TextTable next_table(const std::vector<FamilyReport>& reports);
[[nodiscard]] TextTable repeatability_table(const std::vector<Repeatability>& repeatability);

/// The families as a page's points.
void add_families(const std::vector<FamilyReport>& reports, Page& page);

}  // namespace moeline
