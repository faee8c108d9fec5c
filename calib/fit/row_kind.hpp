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
#include "calib/fit/fit_correction.hpp"

namespace moeline {

/// What a row's cells must be; in a table without the column it is not so. Several columns are joined by "x", "m x n"
/// is "256x12288", or make a ratio, "m / n".
struct RowCondition {
  std::vector<std::string> columns;
  bool is_ratio = false;
  std::vector<std::string> words;  ///< one of these; empty: any number
  double above = -std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();
  double not_multiple_of = 0;  ///< 0: may be any
};

/// Rows that the fit does not see, and why.
struct LeaveOut {
  std::string reason;
  std::vector<RowCondition> conditions;  ///< all of them
};

/// Another version's table of the same kernels: rows that take so much longer than there are a hiccup of this one.
struct Witness {
  std::string file;  ///< its name, from the front
  double above = 0;  ///< times its time; 0: there is none
};

/// More work is never much quicker: a row is a hiccup if it takes so many times as long as another one with the same
/// cells here, and with no less work there.
struct Spikes {
  std::vector<std::string> same;
  std::vector<std::string> rising;   ///< the more, the more work
  std::vector<std::string> falling;  ///< the more, the less: ranks that share it
  double above = 0;                  ///< times; 0: rows are not compared
};

/// Another table that has a part of these kernels alone: its time is taken off where the columns are equal, and rows
/// that it lacks are left out.
struct Less {
  std::string file;  ///< the table's name without its ending; empty: nothing is taken off
  std::vector<std::string> by;
};

struct RowKind {
  std::string name;
  std::string file;                                       ///< the table's name without its ending
  std::vector<RowCondition> where;                        ///< which of its rows
  std::map<std::string, std::string> form;                ///< by profile; "else": of all others
  std::string op;                                         ///< kind of OP
  std::vector<std::pair<std::string, std::string>> keys;  ///< "m", "isl + step", "size * type", "=hot", "window if any"
  std::map<std::string, std::string> words;               ///< cells that are called otherwise in an OP
  std::string time;                                       ///< column
  double us_per_unit = 1;
  std::vector<std::string> slice;  ///< columns whose values name what is left out of a fit together
  Spikes spikes;
  Witness witness;
  Less less;
  std::vector<LeaveOut> leave_out;
  std::vector<Grid> grids;  ///< that a correction of such an OP may have
};

/// Every kind of a mapping file. Throws SpecError (file, line, key).
[[nodiscard]] std::vector<RowKind> read_row_kinds(const std::filesystem::path& path);

[[nodiscard]] bool meets(const std::vector<RowCondition>& conditions, const CsvTable& table, std::size_t row);

/// "linear:dtype=bf16,m=64,n=4096,k=4096,l2=hot". Throws SpecError at the row for a cell that is no number where one is
/// needed.
[[nodiscard]] std::string op_of(const RowKind& kind, const CsvTable& table, std::size_t row);

}  // namespace moeline
