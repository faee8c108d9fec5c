// What validate prints of served models.
#pragma once

#include <string>

#include "experiments/cli/output/json.hpp"
#include "experiments/validate/score_served.hpp"

namespace moeline {

[[nodiscard]] std::string to_table(const ScoredServed& scored);
/// As a member of a list.
void add_served(Json& json, const ScoredServed& scored);

}  // namespace moeline
