// Kineto's JSON, read.
#pragma once

#include <filesystem>

#include "trace/gzip_stream.hpp"
#include "trace/trace.hpp"

namespace moeline {

/// Reads what read_trace says of Kineto's traces. `path` names the file in messages, and its name may tell the rank.
[[nodiscard]] Trace read_kineto(GzipStream& stream, const std::filesystem::path& path);

}  // namespace moeline
