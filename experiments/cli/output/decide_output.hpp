// What `moeline decide` says: who wins where, by how much, why, and how sure that is.
#pragma once

#include <string>

#include "experiments/decide/decide.hpp"
#include "experiments/page/page.hpp"

namespace moeline {

[[nodiscard]] std::string decide_table(const Decision& decision);
/// A row for every point that was simulated.
[[nodiscard]] std::string decide_csv(const Decision& decision);
[[nodiscard]] std::string decide_json(const Decision& decision);
[[nodiscard]] std::string decide_schema();

/// The curves, with what the table says. REQUIRES: along an axis.
[[nodiscard]] Page decide_page(const Decision& decision);
[[nodiscard]] std::string decide_svg(const Decision& decision);

}  // namespace moeline
