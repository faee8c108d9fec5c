// Records of any profiler, made a trace: what was launched by what, in which phase and step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trace/trace_records.hpp"

namespace moeline {

/// What a file says besides its records.
struct TraceFacts {
  std::string device;                 ///< name of the first GPU; empty: not in the file
  std::uint32_t sms = 0;              ///< of it; 0: not in the file
  std::int64_t base_time_ns = 0;      ///< absolute time of the records' 0; up to kLargestTraceTimeNs
  std::optional<std::uint32_t> rank;  ///< of the file; nothing: its name tells
};

/// Finds calls, phases, steps and flows of the records. Throws SpecError (with the file) where they last longer than
/// trace.hpp allows. REQUIRES at least one GPU event; none ends before it starts.
[[nodiscard]] Trace assemble(TraceRecords records, const TraceFacts& facts, const std::filesystem::path& path);

}  // namespace moeline
