// What stands beside a timeline.
#pragma once

#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/page.hpp"

namespace moeline {

/// What the end waited for, by reason and by what waited, and how short it could be.
[[nodiscard]] std::vector<PageTable> tables_of(const Explanation& explanation);

}  // namespace moeline
