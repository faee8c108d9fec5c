// Bytes as an export of Nsight Systems: a database as it is, or SQL that makes one, whose rows a fuzzer can change.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "trace/sqlite_file.hpp"

namespace moeline::fuzz {

/// SQL that goes on for too long, or is wrong somewhere, makes what it has made until then.
inline std::string database_of(std::string_view bytes) {
  if (is_sqlite(bytes)) return std::string(bytes);
  sqlite3* opened = nullptr;
  sqlite3_open(":memory:", &opened);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> connection(opened, sqlite3_close);
  constexpr int kMostInstructions = 200'000;
  constexpr int kLongest = 1 << 20;
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kLongest);
  sqlite3_limit(opened, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_progress_handler(
      opened, kMostInstructions, [](void*) { return 1; }, nullptr);
  sqlite3_exec(opened, "PRAGMA page_size = 512", nullptr, nullptr, nullptr);
  sqlite3_exec(opened, std::string(bytes).c_str(), nullptr, nullptr, nullptr);
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> image(sqlite3_serialize(opened, "main", &size, 0),
                                                                      sqlite3_free);
  return image ? std::string(reinterpret_cast<const char*>(image.get()), static_cast<std::size_t>(size)) : "";
}

}  // namespace moeline::fuzz
