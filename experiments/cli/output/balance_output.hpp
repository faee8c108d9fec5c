// What `moeline balance` prints.
#pragma once

#include <string>

#include "routing/balancing.hpp"

namespace moeline {

[[nodiscard]] std::string balance_json(const Balancing& balancing, const RebalancePolicy& policy);
[[nodiscard]] std::string balance_table(const Balancing& balancing, const RebalancePolicy& policy);

}  // namespace moeline
