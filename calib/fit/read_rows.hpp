// Rows of a table on their way into a fit: which ones a mapping asks for, and which of them are no measurement of the
// kernel: repeats, hiccups, parts that another table has by itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calib/fit/row_kind.hpp"
#include "calib/fit/stack_tables.hpp"
#include "calib/fit/table_file.hpp"

namespace moeline {

struct StackTable {
  std::string name;
  CsvTable csv;
  std::optional<ManifestEntry> manifest;
};

/// A row on its way into a fit.
struct StackReading {
  std::string op;
  std::size_t row = 0;
  double us = 0;
};

/// What is left out, and how far times of one OP are apart, for the report.
class RowLog {
 public:
  explicit RowLog(StackCalibration& result) : lines_(result.log), repeatability_(result.repeatability) {}
  void note(const RowKind& kind, std::size_t rows, const std::string& what) {
    if (rows > 0) lines_.push_back(kind.name + ": " + std::to_string(rows) + " rows " + what);
  }
  void say(const std::string& line) { lines_.push_back(line); }
  void compare(const RowKind& kind, const std::string& beside, std::size_t ops, const std::vector<double>& deviations) {
    if (ops > 0) repeatability_.push_back({kind.name, beside, ops, summary_of(deviations)});
  }

 private:
  std::vector<std::string>& lines_;
  std::vector<Repeatability>& repeatability_;
};

/// Columns and their cells, as a name for rows that are equal in them.
[[nodiscard]] std::string cells_of(const StackTable& table, const std::vector<std::string>& columns, std::size_t row);

/// The rows of the table that the kind asks for, by all of its rules; `tables` has the others that these name. Throws
/// SpecError (file, line) on a cell that is no number.
[[nodiscard]] std::vector<StackReading> read_rows(const StackTable& table, const RowKind& kind,
                                                  const std::vector<StackTable>& tables, RowLog& log);

}  // namespace moeline
