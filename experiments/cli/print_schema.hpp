// moeline --print-schema: what inputs and outputs look like, for editors and other programs.
#pragma once

#include <string>
#include <vector>

namespace moeline {

/// Those of the files of experiments/schema, and of outputs that commands describe themselves; sorted.
[[nodiscard]] std::vector<std::string> schema_names();
/// One of these, whole: with what the tables of metrics and of scenario keys say where a file refers to them.
[[nodiscard]] std::string schema_text(const std::string& name);

/// What --print-schema prints of this one; "": one object of all of them by name.
[[nodiscard]] std::string printed_schema(const std::string& name);

}  // namespace moeline
