#include "trace/read_kineto.hpp"
#include "trace/read_nsight.hpp"
#include "trace/sqlite_file.hpp"

namespace moeline {

Trace read_trace(const std::filesystem::path& path, const Progress& progress) {
  GzipStream stream(path, progress);
  if (!stream.is_packed() && is_sqlite(stream.beginning())) return read_nsight(path);
  return read_kineto(stream, path);
}

}  // namespace moeline
