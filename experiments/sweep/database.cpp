#include "experiments/sweep/database.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <system_error>

namespace moeline {
namespace {

// Where SQLite cannot open a file for writing it tries to read it, and knows only what hindered that.
SpecError not_opened(const std::filesystem::path& file, Database::Open open) {
  constexpr int kMode = 0666;
  const bool writes = open == Database::Open::or_create;
  const int descriptor = ::open(file.c_str(), writes ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, kMode);
  const int number = errno;
  if (descriptor >= 0) ::close(descriptor);
  return {file.string(), 0,
          fmt::format("cannot be opened{}: {}", writes ? " for writing" : "",
                      descriptor >= 0 ? "SQLite refuses it" : std::generic_category().message(number))};
}

constexpr int kPatience = 10000;  // ms, for another process that writes

}  // namespace

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

Database::Database(std::filesystem::path file, Open open) : file_(std::move(file)) {
  const int flags = SQLITE_OPEN_READWRITE | (open == Open::or_create ? SQLITE_OPEN_CREATE : 0);
  sqlite3* connection = nullptr;
  const int result = sqlite3_open_v2(file_.c_str(), &connection, flags, nullptr);
  connection_.reset(connection);
  const bool for_reading_alone = result == SQLITE_OK && sqlite3_db_readonly(connection, "main") == 1;
  if (result != SQLITE_OK || (open == Open::or_create && for_reading_alone)) throw not_opened(file_, open);
  sqlite3_busy_timeout(connection, kPatience);
}

void Database::run(const std::string& sql) { Statement(*this, sql).run(); }

// SQLite waits for a lock, but not for one that two processes would have to give up to each other, as these would.
void Database::write_ahead() {
  constexpr int kPause = 5;  // ms
  for (int waited = 0;; waited += kPause) {
    const int result = sqlite3_exec(connection_.get(), "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (result == SQLITE_OK) return;
    if ((result & 0xff) != SQLITE_BUSY || waited >= kPatience) throw error("written");
    sqlite3_sleep(kPause);
  }
}

SpecError Database::error(const std::string& undone) const {
  std::string why = sqlite3_errmsg(connection_.get());
  const int code = sqlite3_errcode(connection_.get());
  const int number = sqlite3_system_errno(connection_.get());  // of an older error, where the code is another
  if (number != 0 && (code == SQLITE_IOERR || code == SQLITE_CANTOPEN)) {
    why += fmt::format(" ({})", std::generic_category().message(number));
  }
  return {file_.string(), 0, fmt::format("cannot be {}: {}", undone, why)};
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(const Database& database, const std::string& sql) : database_(database) {
  sqlite3_stmt* prepared = nullptr;
  const int result = sqlite3_prepare_v2(database.connection_.get(), sql.c_str(), -1, &prepared, nullptr);
  statement_.reset(prepared);
  if (result != SQLITE_OK) throw database.error("read");  // its schema, which comes first
}

void Statement::bind(int place, std::int64_t value) { sqlite3_bind_int64(statement_.get(), place, value); }
void Statement::bind(int place, double value) { sqlite3_bind_double(statement_.get(), place, value); }
void Statement::bind(int place, const std::string& text) {
  sqlite3_bind_text(statement_.get(), place, text.c_str(), static_cast<int>(text.size()), SQLITE_STATIC);
}

bool Statement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  const SpecError error = database_.error(sqlite3_stmt_readonly(statement_.get()) != 0 ? "read" : "written");
  reset();
  throw error;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::number_or_nan(int column) const {
  const bool absent = sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  return absent ? NAN : sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

Transaction::Transaction(Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const SpecError&) {  // SQLite has rolled back on its own, as it does when the disk is full
  }
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace moeline
