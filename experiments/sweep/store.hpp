// The table of a study in one SQLite file: a row per finished point, there as soon as it is finished.
//
// Tables: `study` (key, value: the text it belongs to, its metrics) and `points` (id, a text column per axis, a number
// per metric, failure). Every row is a transaction of its own in write-ahead mode: a process that is killed loses none
// that it finished, and at most the points that it was working on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiments/sweep/study.hpp"

struct sqlite3;

namespace moeline {

struct PointResult {
  std::size_t id = 0;
  std::vector<double> metrics{};  ///< NaN where one does not apply
  std::string failure{};          ///< why there are none; empty of one that ran
};

class Store {
 public:
  enum class Mode { create, resume };
  /// Throws SpecError: the file exists (create), holds another study (resume), or cannot be written. REQUIRES: the
  /// study outlives it.
  Store(std::filesystem::path file, const Study& study, Mode mode);

  /// Throws SpecError where it cannot be written; what is stored stays.
  void add(const PointResult& result);
  /// Rows of another file of the same study. Throws SpecError where it is of another.
  void merge(const std::filesystem::path& other);

  /// By id.
  [[nodiscard]] std::vector<PointResult> results() const;
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  void run(const std::string& sql) const;
  [[nodiscard]] bool is_empty() const;
  void create_tables();
  void check_study(const std::string& database) const;
  [[noreturn]] void fail(const std::string& doing) const;

  std::filesystem::path file_;
  const Study& study_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace moeline
