// Which families of models are known, what is modelled of each, and which of our descriptions are of it.
#pragma once

#include <string>

namespace moeline {

/// Rows of Markdown, as on the page of model/zoo. `name`: of one family alone; "": of all. Throws SpecError with the
/// nearest name.
[[nodiscard]] std::string families_table(const std::string& name);
[[nodiscard]] std::string families_json(const std::string& name);

}  // namespace moeline
