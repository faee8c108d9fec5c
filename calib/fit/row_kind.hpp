// What the rows of other people's tables are: a mapping from their columns to OPs of `moeline price`, in YAML
// (calib/tables), so that next year's tables need no recompilation.
#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.hpp"

namespace moeline {

/// What a row's cells must be. Several columns are joined by "x", "m x n" is "256x12288", or make a ratio, "m / n".
struct Condition {
  std::vector<std::string> columns;
  bool is_ratio = false;
  std::vector<std::string> words;  ///< one of these; empty: any number
  double above = -std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();
};

/// Rows that the fit does not see, and why.
struct LeaveOut {
  std::string reason;
  std::vector<Condition> conditions;  ///< all of them
};

/// Another version's table of the same kernels: rows that take so much longer than there are a hiccup of this one.
struct Witness {
  std::string file;  ///< its name, from the front
  double above = 0;  ///< times its time; 0: there is none
};

struct RowKind {
  std::string name;
  std::string file;                                       ///< the table's name without its ending
  std::vector<Condition> where;                           ///< which of its rows
  std::map<std::string, std::string> form;                ///< by profile; "else": of all others
  std::string op;                                         ///< kind of OP
  std::vector<std::pair<std::string, std::string>> keys;  ///< its keys: "m", "isl + step", "bytes * size", "=hot"
  std::map<std::string, std::string> words;               ///< cells that are called otherwise in an OP
  std::string time;                                       ///< column
  double us_per_unit = 1;
  std::vector<std::string> slice;   ///< columns whose values name what is left out of a fit together
  std::vector<std::string> spikes;  ///< columns of sizes: with all of them larger no row is much quicker; empty: unused
  Witness witness;
  std::vector<LeaveOut> leave_out;
};

/// Every kind of a mapping file. Throws SpecError (file, line, key).
[[nodiscard]] std::vector<RowKind> read_row_kinds(const std::filesystem::path& path);

[[nodiscard]] bool meets(const std::vector<Condition>& conditions, const CsvTable& table, std::size_t row);

/// "linear:dtype=bf16,m=64,n=4096,k=4096,l2=hot". Throws SpecError at the row for a cell that is no number where one is
/// needed.
[[nodiscard]] std::string op_of(const RowKind& kind, const CsvTable& table, std::size_t row);

}  // namespace moeline
