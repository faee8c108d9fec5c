// A table of a serving stack's kernels as it lies in a folder: plain or gzipped, with a manifest beside its folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.hpp"
#include "calib/fit/row_kind.hpp"
#include "calib/fit/stack_tables.hpp"

namespace moeline {

/// What manifest.csv says of a table.
struct ManifestEntry {
  std::string device;   ///< that it was measured on: "NVIDIA B200"
  std::string backend;  ///< "sglang"
  std::string version;
  std::string commit;  ///< of its source
};

/// "gemm_sglang" of ".../b200_sxm/gemm_sglang.csv.gz".
[[nodiscard]] std::string table_name(const std::filesystem::path& file);

/// Plain, or gzip. Throws SpecError for one that is damaged or cut off, or larger than 256 MiB unpacked.
[[nodiscard]] CsvTable read_table(const std::filesystem::path& file);

/// Its line of the manifest.csv above the table's folder; none where there is no such file or line.
[[nodiscard]] std::optional<ManifestEntry> manifest_entry(const std::filesystem::path& file);

// Rows of a table on their way into a fit: which ones a mapping asks for, and which of them are no measurement of the
// kernel: repeats, hiccups, parts that another table has by itself.

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
