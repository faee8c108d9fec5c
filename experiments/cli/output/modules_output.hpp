// The modules of a model and what they did in a step, as JSON or a table.
#pragma once

#include <string>

#include "experiments/cli/output/json.hpp"
#include "experiments/explain/modules.hpp"

namespace moeline {

/// The key "modules", and "tokens_per_gpu" where that is known.
void add_modules(Json& json, const ModuleTable& table);
[[nodiscard]] std::string to_table(const std::string& title, const ModuleTable& table);

}  // namespace moeline
