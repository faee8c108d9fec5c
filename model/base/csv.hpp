// A CSV file as a table: columns by name, cells as text or number, errors with file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace moeline {

class CsvTable {
 public:
  enum class Header { always, unless_numbers };

  /// `unless_numbers`: a first line of numbers alone is a row, and columns are called 0, 1, 2, ...
  /// Throws SpecError for a file that is missing, empty, binary, or whose rows differ in length from its first line,
  /// and for more than 65536 columns.
  explicit CsvTable(const std::filesystem::path& path, Header header = Header::always);
  /// Of text that came from this file otherwise.
  CsvTable(const std::filesystem::path& path, const std::string& text, Header header = Header::always);

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] bool has(const std::string& column) const { return places_.contains(column); }
  [[nodiscard]] bool has_header() const { return has_header_; }
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// Throws SpecError for a column that is none of these.
  void expect(const std::vector<std::string>& known) const;
  [[nodiscard]] std::string text(std::size_t row, const std::string& column) const;
  [[nodiscard]] double number(std::size_t row, const std::string& column) const;
  [[nodiscard]] double positive(std::size_t row, const std::string& column) const;
  /// A whole number within [low, high].
  [[nodiscard]] int integer(std::size_t row, const std::string& column, int low, int high) const;
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Without its folder and extension.
  [[nodiscard]] std::string stem() const { return std::filesystem::path(file_).stem().string(); }
  /// 1-based line of the file at which a row stands.
  [[nodiscard]] int line(std::size_t row) const { return static_cast<int>(row) + (has_header_ ? 2 : 1); }

 private:
  void add_row(std::string_view line);
  [[nodiscard]] std::string_view cell(std::size_t row, const std::string& column) const;

  std::string file_;
  bool has_header_ = true;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t rows_ = 0;
  // Of all rows, one after the other: a string of its own for each cell takes 16 times as much as a short cell.
  std::string cells_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace moeline
