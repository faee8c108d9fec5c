// What the keys of calib/bench's table have as parameters and metrics: calib/schema.md, for the reader.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace moeline {

/// A parameter that is no number.
struct BenchWord {
  std::string name;
  std::vector<std::string> values;
};

struct BenchKey {
  std::string name;
  std::vector<std::string> shape;     ///< parameters that are whole numbers
  std::vector<BenchWord> words;       ///< and those that are not
  std::vector<std::string> optional;  ///< whole numbers that may be absent
  std::vector<std::string> metrics;   ///< all in us
};

[[nodiscard]] const std::vector<BenchKey>& bench_keys();

/// Null where there is none of that name. A contention has, besides its own parameters, those of the kernel that the
/// neighbour disturbs: `contention_of` adds them.
[[nodiscard]] const BenchKey* find_bench_key(const std::string& name);
[[nodiscard]] BenchKey contention_of(const BenchKey& kernel);

// The table that calib/bench writes (calib/schema.md), read and checked.

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
