// Nsight Systems' SQLite export, read.
#pragma once

#include <filesystem>

#include "trace/trace.hpp"

namespace moeline {

/// Reads what read_trace says of Nsight Systems' exports.
[[nodiscard]] Trace read_nsight(const std::filesystem::path& path);

}  // namespace moeline
