// The table of a study in one SQLite file: a row per finished point, there as soon as it is finished.
//
// Tables: `study` (key, value: the text it belongs to) and `points` (id, a text column per axis, a number per metric,
// failure); the header says whose file it is (application_id) and in which layout (user_version). Every row is a
// transaction of its own in write-ahead mode: a process that is killed, or whose disk is full, loses none that it
// stored, and at most the points that it was working on. (What synchronous=NORMAL may lose is the last rows before a
// power failure.) Several processes may write one file, each waiting for the others: a point that two of them simulate
// is one row.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/sweep/database.hpp"
#include "experiments/sweep/study.hpp"

namespace moeline {

struct PointResult {
  std::size_t id = 0;
  std::vector<double> metrics{};  ///< NaN where one does not apply
  std::string failure{};          ///< why there are none; empty of one that ran
};

class Store {
 public:
  enum class Mode { create, resume, read };
  /// Throws SpecError: the file holds a table (create) or another study (resume, read), is no SQLite file, another
  /// program's or another version's, or cannot be written (create, resume). A file without tables, which a process
  /// killed early leaves, is as good as none; only `read` refuses it. REQUIRES: the study outlives it.
  Store(std::filesystem::path file, const Study& study, Mode mode);

  /// Throws SpecError where it cannot be written; what is stored stays. REQUIRES: not opened to read.
  void add(const PointResult& result);
  /// All of them, or none.
  void add(std::span<const PointResult> results);

  /// By id.
  [[nodiscard]] std::vector<PointResult> results() const;
  /// For each point of the study: has it a row?
  [[nodiscard]] std::vector<bool> stored() const;
  [[nodiscard]] const std::filesystem::path& file() const { return database_.file(); }

 private:
  [[nodiscard]] bool is_empty() const;
  [[nodiscard]] std::int64_t header(const char* pragma) const;
  void admit(Mode mode) const;
  void prepare_to_write(Mode mode);
  void create_tables();
  [[nodiscard]] std::size_t id_of(const Statement& row) const;

  const Study& study_;
  Database database_;
  std::optional<Statement> insert_;  // of a store that is written
};

/// The rows of several tables of the study, in this order; a point may be in more than one. Throws SpecError for the
/// first file that is none.
[[nodiscard]] std::vector<PointResult> read_tables(const std::vector<std::string>& files, const Study& study);

}  // namespace moeline
