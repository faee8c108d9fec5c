#include "calib/fit/csv.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

// Cells of one line; a cell in double quotes may hold commas, and "" for a quote. Line breaks in cells are not CSV
// that any of our sources writes.
std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

CsvTable::CsvTable(const std::filesystem::path& path) : file_(path.string()) {
  std::istringstream stream(read_text(path));
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> header = split(line);
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (!columns_.emplace(header[i], i).second) {
      throw SpecError(file_, 1, fmt::format("column '{}' is repeated", header[i]));
    }
  }
  while (std::getline(stream, line)) {
    rows_.push_back(split(line));
    if (rows_.back().size() != header.size()) {
      throw SpecError(file_, this->line(rows_.size() - 1),
                      fmt::format("has {} cells, its header {}", rows_.back().size(), header.size()));
    }
  }
}

const std::string& CsvTable::text(std::size_t row, const std::string& column) const {
  const auto found = columns_.find(column);
  if (found == columns_.end()) throw SpecError(file_, 1, fmt::format("has no column '{}'", column));
  return rows_[row][found->second];
}

double CsvTable::number(std::size_t row, const std::string& column) const {
  const std::string& cell = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) {
    throw SpecError(file_, line(row), fmt::format("{}: '{}' is not a number", column, cell.substr(0, 40)));
  }
  return value;
}

double CsvTable::positive(std::size_t row, const std::string& column) const {
  const double value = number(row, column);
  if (!(value > 0)) throw SpecError(file_, line(row), fmt::format("{} must be above 0, not {}", column, value));
  return value;
}

int CsvTable::integer(std::size_t row, const std::string& column, int low, int high) const {
  const double value = number(row, column);
  if (value < low || value > high || value != std::trunc(value)) {
    throw SpecError(file_, line(row),
                    fmt::format("{} must be a whole number from {} to {}, not {}", column, low, high, value));
  }
  return static_cast<int>(value);
}

}  // namespace moeline
