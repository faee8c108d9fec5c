#include "trace/sqlite_file.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <fstream>

#include "base/text.hpp"
#include "trace/trace_records.hpp"

namespace moeline {
namespace {

using namespace std::string_view_literals;

constexpr int kUnitOfWork = 100'000;

// A row of a table takes some ten instructions and more bytes than that. A damaged tree may hold itself many times
// over, so that reading it would never end.
std::int64_t allowed_work(std::uintmax_t file_bytes) {
  constexpr std::int64_t kInstructionsPerByte = 4;
  constexpr std::int64_t kAlways = 20;
  return kAlways + static_cast<std::int64_t>(file_bytes) / kUnitOfWork * kInstructionsPerByte;
}

// Big-endian.
std::size_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::size_t value = 0;
  for (const char byte : bytes.substr(at, size)) value = value << 8U | static_cast<unsigned char>(byte);
  return value;
}

// SQLite reads what is missing as zeros, or does not miss it. The header's places are of SQLite's file format, section
// 1.3; its number of pages holds where the file was last written by a program that keeps it.
void refuse_truncated(const std::string& name, std::size_t file_bytes) {
  constexpr std::size_t kHeader = 100;
  std::string header(kHeader, '\0');
  if (file_bytes < kHeader || !std::ifstream(name, std::ios::binary).read(header.data(), kHeader)) {
    throw SpecError(name, 0, "truncated: its header breaks off");
  }
  const std::size_t in_header = number_at(header, 16, 2);
  const std::size_t page_bytes = in_header == 1 ? std::size_t{1} << 16U : in_header;
  const std::size_t bytes = number_at(header, 28, 4) * page_bytes;
  const bool is_kept = number_at(header, 24, 4) == number_at(header, 92, 4);
  if (is_kept && file_bytes < bytes) {
    throw SpecError(name, 0, fmt::format("truncated: it has {} of {} bytes", file_bytes, bytes));
  }
}

// "immutable": no lock, no journal, no index of a write-ahead log beside the file.
std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file://";
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool means_something = c == '%' || c == '?' || c == '#';
    uri += means_something ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return uri + "?immutable=1";
}

}  // namespace

bool is_sqlite(std::string_view beginning) { return beginning.starts_with("SQLite format 3\0"sv); }

void SqliteFile::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

SqliteFile::SqliteFile(const std::filesystem::path& path) : name_(path.string()) {
  if (!std::filesystem::is_regular_file(path)) throw error("is an SQLite database in a pipe; give it as a file");
  const std::uintmax_t bytes = std::filesystem::file_size(path);
  refuse_truncated(name_, bytes);
  work_left_ = allowed_work(bytes);
  sqlite3* connection = nullptr;
  const int result =
      sqlite3_open_v2(uri_of(path).c_str(), &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  connection_.reset(connection);
  if (result != SQLITE_OK) throw refused();
  refuse_other_code();
  sqlite3_progress_handler(connection, kUnitOfWork, count_work, this);
  find_tables();
}

int SqliteFile::count_work(void* file) { return --static_cast<SqliteFile*>(file)->work_left_ < 0 ? 1 : 0; }

void SqliteFile::refuse_other_code() const {
  sqlite3* connection = connection_.get();
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  constexpr int kLongestValue = 1 << 26;  // bytes
  sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_exec(connection, "PRAGMA cell_size_check = ON", nullptr, nullptr, nullptr);
}

void SqliteFile::find_tables() {
  SqliteRows rows(*this, "SELECT name, type, rootpage FROM sqlite_master WHERE type IN ('table', 'view')");
  while (rows.next()) {
    const bool stored = !rows.is_null(2) && rows.integer(2) != 0;
    tables_[rows.text(0)] = rows.text(1) == "view" ? Kind::view : stored ? Kind::table : Kind::virtual_table;
  }
}

bool SqliteFile::has(const std::string& table) const {
  const auto found = tables_.find(table);
  return found != tables_.end() && found->second == Kind::table;
}

std::string_view SqliteFile::in_place_of(const std::string& table) const {
  const auto found = tables_.find(table);
  if (found == tables_.end() || found->second == Kind::table) return "";
  return found->second == Kind::view ? "view" : "virtual table";
}

std::vector<std::string> SqliteFile::columns(const std::string& table) const {
  std::vector<std::string> columns;
  if (!has(table)) return columns;
  SqliteRows rows(*this, fmt::format("PRAGMA table_info({})", in_quotes(table)));  // leaves out computed columns
  while (rows.next()) columns.push_back(rows.text(1));
  return columns;
}

SpecError SqliteFile::refused() const {
  if (sqlite3_errcode(connection_.get()) == SQLITE_INTERRUPT) {
    return error("damaged: its tables go on for longer than the file has room for");
  }
  return error(fmt::format("cannot be read as an SQLite database: {}", one_line(sqlite3_errmsg(connection_.get()))));
}

void SqliteRows::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

SqliteRows::SqliteRows(const SqliteFile& file, const std::string& sql) : file_(file) {
  sqlite3_stmt* prepared = nullptr;
  const int result = sqlite3_prepare_v2(file.connection_.get(), sql.c_str(), -1, &prepared, nullptr);
  statement_.reset(prepared);
  if (result != SQLITE_OK) throw file.refused();
}

bool SqliteRows::next() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_DONE) return false;
  if (result != SQLITE_ROW) throw file_.refused();
  ++count_;
  return true;
}

bool SqliteRows::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

std::optional<std::int64_t> SqliteRows::integer(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  if (type == SQLITE_NULL) return std::nullopt;
  if (type == SQLITE_INTEGER) return sqlite3_column_int64(statement_.get(), column);
  const std::string text = this->text(column);
  const std::string_view whole = std::string_view(text).substr(0, text.find(".0"));  // others rewrite integers so
  const std::optional<std::int64_t> value = whole_number<std::int64_t>(text.ends_with(".0") ? whole : text);
  if (value) return value;
  throw SpecError(
      fmt::format("{} '{}' is not a whole number", sqlite3_column_name(statement_.get(), column), one_line(text)));
}

std::string SqliteRows::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr ? "" : std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes));
}

}  // namespace moeline
