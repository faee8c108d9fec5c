#include "base/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moeline {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string us_text(Time time) { return fmt::format("{:.1f}", to_us(time)); }

std::string signed_percent(double error) {
  return std::abs(error) < 0.0005 ? "0.0 %" : fmt::format("{:+.1f} %", 100 * error);
}

std::string TextTable::text(const std::string& indent) const {
  std::vector<std::size_t> widths;
  for (const auto& cells : rows_) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text;
  for (const auto& cells : rows_) {
    std::string line = indent;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool left = alignment_[std::min(i, alignment_.size() - 1)] == 'l';
      line += left ? fmt::format("{:<{}}  ", cells[i], widths[i]) : fmt::format("{:>{}}  ", cells[i], widths[i]);
    }
    text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace moeline
