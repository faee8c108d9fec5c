// The table that calib/bench writes (calib/schema.md), read and checked.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace moeline {

/// The samples of one metric of one kernel.
struct Measurement {
  std::string key;
  std::map<std::string, double> shape;       ///< parameters that are whole numbers
  std::map<std::string, std::string> words;  ///< the others: scaling, mode, kernel, beside
  std::string metric;
  std::vector<double> samples;  ///< us
  int line = 0;                 ///< of the first one
  std::string parameters;       ///< as written

  [[nodiscard]] double at(const std::string& parameter) const { return shape.at(parameter); }
  [[nodiscard]] double median() const;
};

struct BenchTable {
  std::string file;
  std::map<std::string, std::string> header;
  std::map<std::string, int> header_lines;  ///< where each name of the header stands
  std::vector<Measurement> measurements;    ///< in the order of their first samples
  std::vector<std::string> skipped;         ///< "key parameters: reason"

  /// A refusal of what the header says under this name: "device MESSAGE" at its line. REQUIRES: it has the name.
  [[nodiscard]] SpecError error_at(const std::string& name, const std::string& message) const;
};

/// Whether the file's first line says that it is one.
[[nodiscard]] bool is_bench_table(const std::filesystem::path& file);

/// Throws SpecError with file, line and reason for a damaged or incomplete table: another format, header lines that are
/// missing, a row that is cut short, an unknown key, parameter, metric or unit, samples out of order, a value that is
/// not above 0, and a table whose last line does not count its rows.
[[nodiscard]] BenchTable read_bench_table(const std::filesystem::path& file);

}  // namespace moeline
