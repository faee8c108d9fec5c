#include "base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
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

// A finite number, with blanks around it.
std::optional<double> number_in(const std::string& cell) {
  const std::size_t first = cell.find_first_not_of(' ');
  if (first == std::string::npos) return std::nullopt;
  const char* const last = cell.data() + cell.find_last_not_of(' ') + 1;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data() + first, last, value);
  if (error != std::errc() || end != last || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool all_numbers(const std::vector<std::string>& cells) {
  return std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return number_in(cell).has_value(); });
}

}  // namespace

CsvTable::CsvTable(const std::filesystem::path& path, Header header) : CsvTable(path, read_text(path), header) {}

CsvTable::CsvTable(const std::filesystem::path& path, const std::string& text, Header header) : file_(path.string()) {
  std::istringstream stream(text);
  std::string line;
  std::getline(stream, line);
  columns_ = split(line);
  if (header == Header::unless_numbers && all_numbers(columns_)) {
    has_header_ = false;
    rows_.push_back(columns_);
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i] = std::to_string(i);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!places_.emplace(columns_[i], i).second) {
      throw SpecError(file_, 1, fmt::format("column '{}' is repeated", columns_[i]));
    }
  }
  while (std::getline(stream, line)) {
    rows_.push_back(split(line));
    if (rows_.back().size() != columns_.size()) {
      throw SpecError(file_, this->line(rows_.size() - 1),
                      fmt::format("has {} cells, {} {}", rows_.back().size(),
                                  has_header_ ? "its header" : "the first line", columns_.size()));
    }
  }
}

void CsvTable::expect(const std::vector<std::string>& known) const {
  for (const std::string& column : columns_) {
    if (std::find(known.begin(), known.end(), column) == known.end()) {
      throw SpecError(file_, 1, unknown_name("column", column, known));
    }
  }
}

const std::string& CsvTable::text(std::size_t row, const std::string& column) const {
  const auto found = places_.find(column);
  if (found == places_.end()) throw SpecError(file_, 1, fmt::format("has no column '{}'", column));
  return rows_[row][found->second];
}

double CsvTable::number(std::size_t row, const std::string& column) const {
  const std::string& cell = text(row, column);
  const std::optional<double> value = number_in(cell);
  if (!value) throw SpecError(file_, line(row), fmt::format("{}: '{}' is not a number", column, cell.substr(0, 40)));
  return *value;
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
