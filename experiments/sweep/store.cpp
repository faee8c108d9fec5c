#include "experiments/sweep/store.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

std::string columns_of(const Study& study) {
  std::string columns = "id";
  for (const std::string& key : study.keys) columns += ", " + in_quotes(key);
  for (const std::string& metric : study.metrics) columns += ", " + in_quotes(metric);
  return columns + ", failure";
}

void bind_text(sqlite3_stmt* statement, int place, const std::string& text) {
  sqlite3_bind_text(statement, place, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

}  // namespace

void Store::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Store::Store(std::filesystem::path file, const Study& study, Mode mode) : file_(std::move(file)), study_(study) {
  const bool exists = std::filesystem::exists(file_);
  if (exists && mode == Mode::create) {
    throw SpecError(file_.string(), 0, "is there already: --resume continues it, -o names another");
  }
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(file_.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  database_.reset(opened);
  if (result != SQLITE_OK) fail("be opened");
  constexpr int kPatience = 10000;  // ms, for another process that writes
  sqlite3_busy_timeout(opened, kPatience);
  run("PRAGMA journal_mode = WAL");
  run("PRAGMA synchronous = NORMAL");
  // A process that was killed early leaves a file without tables.
  is_empty() ? create_tables() : check_study("main");
}

bool Store::is_empty() const {
  sqlite3_stmt* prepared = nullptr;
  const char* sql = "SELECT count(*) FROM sqlite_master";
  if (sqlite3_prepare_v2(database_.get(), sql, -1, &prepared, nullptr) != SQLITE_OK) fail("be read as a study");
  const Statement statement(prepared);
  return sqlite3_step(prepared) == SQLITE_ROW && sqlite3_column_int(prepared, 0) == 0;
}

void Store::create_tables() {
  std::string sql = "BEGIN; CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT);";
  sql += "CREATE TABLE points (id INTEGER PRIMARY KEY";
  for (const std::string& key : study_.keys) sql += ", " + in_quotes(key) + " TEXT";
  for (const std::string& metric : study_.metrics) sql += ", " + in_quotes(metric) + " REAL";
  run(sql + ", failure TEXT)");
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(database_.get(), "INSERT INTO study VALUES ('text', ?)", -1, &prepared, nullptr);
  const Statement statement(prepared);
  bind_text(prepared, 1, study_.text);
  if (sqlite3_step(prepared) != SQLITE_DONE) fail("be written");
  run("COMMIT");
}

void Store::check_study(const std::string& database) const {
  sqlite3_stmt* prepared = nullptr;
  const std::string sql = fmt::format("SELECT value FROM {}.study WHERE key = 'text'", database);
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail("be read as a study");
  const Statement statement(prepared);
  if (sqlite3_step(prepared) != SQLITE_ROW) fail("be read as a study");
  const std::string text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0));
  if (text == study_.text) return;
  throw SpecError(file_.string(), 0,
                  "holds another study: it or its scenario has changed since; -o names another file");
}

void Store::add(const PointResult& result) {
  std::string places = "?";
  for (std::size_t i = 0; i < study_.keys.size() + study_.metrics.size() + 1; ++i) places += ", ?";
  const std::string sql = fmt::format("INSERT OR IGNORE INTO points ({}) VALUES ({})", columns_of(study_), places);
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail("be written");
  const Statement statement(prepared);
  int place = 1;
  sqlite3_bind_int64(prepared, place++, static_cast<sqlite3_int64>(result.id));
  for (const std::string& value : study_.points[result.id]) bind_text(prepared, place++, value);
  for (std::size_t i = 0; i < study_.metrics.size(); ++i, ++place) {
    if (i < result.metrics.size() && !std::isnan(result.metrics[i])) {
      sqlite3_bind_double(prepared, place, result.metrics[i]);
    }
  }
  if (!result.failure.empty()) bind_text(prepared, place, result.failure);
  if (sqlite3_step(prepared) != SQLITE_DONE) fail("be written");
}

void Store::merge(const std::filesystem::path& other) {
  if (!std::filesystem::exists(other)) throw SpecError(other.string(), 0, "no such file");
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(database_.get(), "ATTACH DATABASE ? AS other", -1, &prepared, nullptr);
  {
    const Statement statement(prepared);
    bind_text(prepared, 1, other.string());
    if (sqlite3_step(prepared) != SQLITE_DONE) throw SpecError(other.string(), 0, sqlite3_errmsg(database_.get()));
  }
  try {
    check_study("other");
  } catch (const SpecError&) {
    throw SpecError(other.string(), 0, "is no table of this study, or of an older text of it or of its scenario");
  }
  run(fmt::format("INSERT OR IGNORE INTO main.points ({0}) SELECT {0} FROM other.points", columns_of(study_)));
  run("DETACH DATABASE other");
}

std::vector<PointResult> Store::results() const {
  sqlite3_stmt* prepared = nullptr;
  const std::string sql = fmt::format("SELECT {} FROM points ORDER BY id", columns_of(study_));
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail("be read");
  const Statement statement(prepared);
  const int first = 1 + static_cast<int>(study_.keys.size());
  const int count = static_cast<int>(study_.metrics.size());
  std::vector<PointResult> results;
  while (sqlite3_step(prepared) == SQLITE_ROW) {
    PointResult result{.id = static_cast<std::size_t>(sqlite3_column_int64(prepared, 0))};
    for (int i = 0; i < count; ++i) {
      const bool absent = sqlite3_column_type(prepared, first + i) == SQLITE_NULL;
      result.metrics.push_back(absent ? NAN : sqlite3_column_double(prepared, first + i));
    }
    const unsigned char* failure = sqlite3_column_text(prepared, first + count);
    if (failure != nullptr) result.failure = reinterpret_cast<const char*>(failure);
    results.push_back(std::move(result));
  }
  return results;
}

void Store::run(const std::string& sql) const {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail("be written");
}

void Store::fail(const std::string& doing) const {
  throw SpecError(file_.string(), 0, fmt::format("cannot {}: {}", doing, sqlite3_errmsg(database_.get())));
}

}  // namespace moeline
