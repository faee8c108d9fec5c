#include "base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

constexpr std::size_t kMostColumns = 65536;

// Runs `take` with every character of the line that is of a cell, and `end` behind each cell; a cell in double quotes
// may hold commas, and "" for a quote. Line breaks in cells are not CSV that any of our sources writes.
template <class Take, class End>
void split(std::string_view line, Take take, End end) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      take(line[++i]);
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      end();
    } else if (c != '\r') {
      take(c);
    }
  }
  end();
}

std::vector<std::string> first_cells(std::string_view line, const std::string& file) {
  std::vector<std::string> cells;
  std::string cell;
  split(
      line, [&](char c) { cell += c; },
      [&] {
        if (cells.size() == kMostColumns)
          throw SpecError(file, 1, fmt::format("has more than {} columns", kMostColumns));
        cells.push_back(std::move(cell));
        cell.clear();
      });
  return cells;
}

// A finite number, with blanks around it.
std::optional<double> number_in(std::string_view cell) {
  const std::size_t first = cell.find_first_not_of(' ');
  if (first == std::string_view::npos) return std::nullopt;
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
  std::string_view rest = text;
  const auto next_line = [&] {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
  };
  const std::string_view first = next_line();
  columns_ = first_cells(first, file_);
  if (header == Header::unless_numbers && all_numbers(columns_)) {
    has_header_ = false;
    add_row(first);
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i] = std::to_string(i);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!places_.emplace(columns_[i], i).second) {
      throw SpecError(file_, 1, fmt::format("column '{}' is repeated", columns_[i]));
    }
  }
  while (!rest.empty()) add_row(next_line());
}

void CsvTable::add_row(std::string_view line) {
  const std::size_t before = ends_.size();
  split(
      line, [&](char c) { cells_ += c; }, [&] { ends_.push_back(static_cast<std::uint32_t>(cells_.size())); });
  const std::size_t cells = ends_.size() - before;
  if (cells != columns_.size()) {
    throw SpecError(
        file_, this->line(rows_),
        fmt::format("has {} cells, {} {}", cells, has_header_ ? "its header" : "the first line", columns_.size()));
  }
  ++rows_;
}

void CsvTable::expect(const std::vector<std::string>& known) const {
  for (const std::string& column : columns_) {
    if (std::find(known.begin(), known.end(), column) == known.end()) {
      throw SpecError(file_, 1, unknown_name("column", column, known));
    }
  }
}

std::string_view CsvTable::cell(std::size_t row, const std::string& column) const {
  const auto found = places_.find(column);
  if (found == places_.end()) throw SpecError(file_, 1, fmt::format("has no column '{}'", column));
  const std::size_t place = row * columns_.size() + found->second;
  const std::size_t begin = place == 0 ? 0 : ends_[place - 1];
  return std::string_view(cells_).substr(begin, ends_[place] - begin);
}

std::string CsvTable::text(std::size_t row, const std::string& column) const { return std::string(cell(row, column)); }

double CsvTable::number(std::size_t row, const std::string& column) const {
  const std::string_view text = cell(row, column);
  const std::optional<double> value = number_in(text);
  if (!value) throw SpecError(file_, line(row), fmt::format("{}: '{}' is not a number", column, text.substr(0, 40)));
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
