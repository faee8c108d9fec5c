// Columns of text, each as wide as its widest cell.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"

namespace moeline {

/// Cells: "2.1 %", and with its sign "+2.1 %", or "0.0 %".
[[nodiscard]] std::string percent(double share);
[[nodiscard]] std::string signed_percent(double error);
/// Microseconds, to a tenth: "12.3".
[[nodiscard]] std::string us_text(Time time);

class TextTable {
 public:
  /// One letter per column, l or r; columns beyond are aligned as the last.
  explicit TextTable(std::string alignment) : alignment_(std::move(alignment)) {}

  [[nodiscard]] const std::string& alignment() const { return alignment_; }
  [[nodiscard]] const std::vector<std::vector<std::string>>& rows() const { return rows_; }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Two blanks between columns, none at the ends of lines.
  [[nodiscard]] std::string text(const std::string& indent = "") const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace moeline
