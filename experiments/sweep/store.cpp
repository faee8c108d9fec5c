#include "experiments/sweep/store.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

// In the file's header: whose it is, and in what layout of tables.
constexpr int kApplication = 0x6d6f656c;  // "moel"
constexpr int kLayout = 1;

std::string columns_of(const Study& study) {
  std::string columns = "id";
  for (const std::string& key : study.keys) columns += ", " + in_quotes(key);
  for (const std::string& metric : study.metrics) columns += ", " + in_quotes(metric);
  return columns + ", failure";
}

std::string insert_into(const Study& study) {
  std::string places = "?";
  for (std::size_t i = 0; i < study.keys.size() + study.metrics.size() + 1; ++i) places += ", ?";
  return fmt::format("INSERT OR IGNORE INTO points ({}) VALUES ({})", columns_of(study), places);
}

}  // namespace

Store::Store(std::filesystem::path file, const Study& study, Mode mode)
    : study_(study),
      database_(std::move(file), mode == Mode::read ? Database::Open::existing : Database::Open::or_create) {
  if (mode == Mode::read || !is_empty()) admit(mode);  // before anything of another's file is changed
  if (mode != Mode::read) prepare_to_write(mode);
}

bool Store::is_empty() const {
  Statement tables(database_, "SELECT 1 FROM sqlite_master");
  return !tables.step();
}

std::int64_t Store::header(const char* pragma) const {
  Statement number(database_, fmt::format("PRAGMA {}", pragma));
  return number.step() ? number.integer(0) : 0;
}

void Store::admit(Mode mode) const {
  if (mode == Mode::create) {
    throw SpecError(file().string(), 0, "is there already: --resume continues it, -o names another");
  }
  if (header("application_id") != kApplication) {
    throw SpecError(file().string(), 0, "is an SQLite file, and holds no table of a sweep");
  }
  if (const std::int64_t layout = header("user_version"); layout != kLayout) {
    throw SpecError(
        file().string(), 0,
        fmt::format("was written by another version of moeline: its tables have layout {}, not {}", layout, kLayout));
  }
  Statement text(database_, "SELECT value FROM study WHERE key = 'text'");
  if (text.step() && text.text(0) == study_.text) return;
  throw SpecError(file().string(), 0, "holds another study: it or its scenario has changed since");
}

// That it can be written is known before anything is simulated; of several processes that begin at once, one creates.
void Store::prepare_to_write(Mode mode) {
  database_.write_ahead();
  database_.run("PRAGMA synchronous = NORMAL");
  Transaction transaction(database_);
  is_empty() ? create_tables() : admit(mode);
  transaction.commit();
  insert_.emplace(database_, insert_into(study_));
}

void Store::create_tables() {
  database_.run("CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT)");
  std::string columns = "id INTEGER PRIMARY KEY";
  for (const std::string& key : study_.keys) columns += fmt::format(", {} TEXT", in_quotes(key));
  for (const std::string& metric : study_.metrics) columns += fmt::format(", {} REAL", in_quotes(metric));
  database_.run(fmt::format("CREATE TABLE points ({}, failure TEXT)", columns));
  database_.run(fmt::format("PRAGMA application_id = {}", kApplication));
  database_.run(fmt::format("PRAGMA user_version = {}", kLayout));
  Statement text(database_, "INSERT INTO study VALUES ('text', ?)");
  text.bind(1, study_.text);
  text.run();
}

void Store::add(const PointResult& result) {
  int place = 1;
  insert_->bind(place++, static_cast<std::int64_t>(result.id));
  for (const std::string& value : study_.points[result.id]) insert_->bind(place++, value);
  for (std::size_t i = 0; i < study_.metrics.size(); ++i, ++place) {
    if (i < result.metrics.size() && !std::isnan(result.metrics[i])) insert_->bind(place, result.metrics[i]);
  }
  if (!result.failure.empty()) insert_->bind(place, result.failure);
  insert_->run();
}

void Store::add(std::span<const PointResult> results) {
  Transaction transaction(database_);
  for (const PointResult& result : results) add(result);
  transaction.commit();
}

std::vector<PointResult> Store::results() const {
  const int first = 1 + static_cast<int>(study_.keys.size());
  const int behind = first + static_cast<int>(study_.metrics.size());
  Statement row(database_, fmt::format("SELECT {} FROM points ORDER BY id", columns_of(study_)));
  std::vector<PointResult> results;
  while (row.step()) {
    PointResult& result = results.emplace_back();
    result.id = id_of(row);
    result.metrics.reserve(study_.metrics.size());
    for (int column = first; column < behind; ++column) result.metrics.push_back(row.number_or_nan(column));
    result.failure = row.text(behind);
  }
  return results;
}

std::vector<bool> Store::stored() const {
  std::vector<bool> stored(study_.points.size(), false);
  Statement row(database_, "SELECT id FROM points");
  while (row.step()) stored[id_of(row)] = true;
  return stored;
}

std::size_t Store::id_of(const Statement& row) const {
  const std::int64_t id = row.integer(0);
  if (id >= 0 && static_cast<std::size_t>(id) < study_.points.size()) return static_cast<std::size_t>(id);
  throw SpecError(file().string(), 0, fmt::format("has a point {}, which the study has not", id));
}

std::vector<PointResult> read_tables(const std::vector<std::string>& files, const Study& study) {
  std::vector<PointResult> all;
  for (const std::string& file : files) {
    std::vector<PointResult> results = Store(file, study, Store::Mode::read).results();
    std::move(results.begin(), results.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace moeline
