// A row of a table as CSV.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"

namespace moeline {

/// With its end; cells that hold a comma, a quote or a line's end stand in quotes.
[[nodiscard]] inline std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    const bool quoted = cell.find_first_of(",\"\n") != std::string::npos;
    line += (line.empty() ? "" : ",") + (quoted ? in_quotes(cell) : cell);
  }
  return line + "\n";
}

}  // namespace moeline
