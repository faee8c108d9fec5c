// One SQLite file and its statements. Whatever SQLite refuses is a SpecError that names the file and says what failed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace moeline {

class Database {
 public:
  enum class Open { existing, or_create };
  Database(std::filesystem::path file, Open open);

  /// One SQL command without values.
  void run(const std::string& sql);
  /// Makes its journal a write-ahead log. Of several processes that do so at once, each waits for the others.
  void write_ahead();
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  friend class Statement;
  [[nodiscard]] SpecError error(const std::string& undone) const;
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> connection_;
};

/// Prepared once, and run as often as it is wanted: bind, then step through its rows. REQUIRES: the database outlives
/// it.
class Statement {
 public:
  Statement(const Database& database, const std::string& sql);

  /// Places count from 1; one that is not bound is NULL. REQUIRES: a text lives until the statement has run.
  void bind(int place, std::int64_t value);
  void bind(int place, double value);
  void bind(int place, const std::string& text);
  /// To the next row; false behind the last one. After an error, as after run(), values can be bound anew.
  bool step();
  /// To the end.
  void run();

  /// Of the row, columns count from 0.
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double number_or_nan(int column) const;
  [[nodiscard]] std::string text(int column) const;  ///< of NULL: empty

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void reset();
  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// All that is written before commit() is there, or nothing of it. No other process can write meanwhile.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace moeline
