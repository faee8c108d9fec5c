// An SQLite file of others, which may be damaged or hostile: its tables are read row by row, and nothing else of it
// runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace moeline {

/// Whether a file whose first bytes these are is an SQLite database.
[[nodiscard]] bool is_sqlite(std::string_view beginning);

/// Opened for reading alone, as a file that nobody changes meanwhile: neither its folder nor it is written. Whatever
/// SQLite refuses, and a table that goes on for longer than the file has room for, is a SpecError that names the file.
class SqliteFile {
 public:
  explicit SqliteFile(const std::filesystem::path& path);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// A table with rows of its own. Views are none, and neither are virtual tables, which run code of theirs.
  [[nodiscard]] bool has(const std::string& table) const;
  /// "view" or "virtual table" for what is in place of a table; empty: nothing is.
  [[nodiscard]] std::string_view in_place_of(const std::string& table) const;
  /// Those that are stored. Of a table that is not there: none.
  [[nodiscard]] std::vector<std::string> columns(const std::string& table) const;
  [[nodiscard]] SpecError error(std::string_view message) const { return {name_, 0, message}; }

 private:
  friend class SqliteRows;
  enum class Kind : std::uint8_t { table, view, virtual_table };
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  static int count_work(void* file);
  void refuse_other_code() const;
  void find_tables();
  [[nodiscard]] SpecError refused() const;

  std::string name_;
  std::int64_t work_left_ = 0;  // of SQLite's machine, in units of kUnitOfWork instructions
  std::unique_ptr<sqlite3, Close> connection_;
  std::map<std::string, Kind> tables_;
};

/// The rows of one query. Columns count from 0.
class SqliteRows {
 public:
  SqliteRows(const SqliteFile& file, const std::string& sql);

  /// To the next row; false behind the last one.
  bool next();
  /// How many rows there were so far.
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] bool is_null(int column) const;
  /// Nothing: NULL. Throws SpecError, without file, for what is no whole number.
  [[nodiscard]] std::optional<std::int64_t> integer(int column) const;
  [[nodiscard]] std::string text(int column) const;  ///< of NULL: empty

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  const SqliteFile& file_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::int64_t count_ = 0;
};

}  // namespace moeline
