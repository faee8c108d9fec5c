// The tables of Nsight Systems' SQLite export. They differ between its versions: tables without rows may be absent,
// columns come and go, and their order says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/sqlite_file.hpp"

namespace moeline {

/// Names that a column has or had; the first that is there and not NULL counts.
struct NsightColumn {
  std::vector<std::string> names;
  bool needed = true;  ///< else NULL where it is absent
};

/// The query for the rows of a table that is there. `what` goes before the columns ("DISTINCT"). Throws SpecError where
/// a column is missing that is needed.
[[nodiscard]] std::string select_from(const SqliteFile& file, const std::string& table,
                                      const std::vector<NsightColumn>& columns, const std::string& what = "");

/// Calls `visit` with each row of a table; what that throws without a file gets file, table and row. Nothing happens
/// where the table is absent.
template <class Visit>
void for_each_row(const SqliteFile& file, const std::string& table, const std::vector<NsightColumn>& columns,
                  Visit visit, const std::string& what = "") {
  if (!file.has(table)) return;
  SqliteRows rows(file, select_from(file, table, columns, what));
  while (rows.next()) {
    try {
      visit(rows);
    } catch (const SpecError& error) {
      if (error.names_file()) throw;
      throw file.error("row " + std::to_string(rows.count()) + " of " + table + ": " + error.what());
    }
  }
}

/// What the numbers in a column mean: StringIds.
using NsightNames = std::unordered_map<std::int64_t, std::string>;

/// The names that these tables' columns use, of those that are there.
struct NameUse {
  std::string table, column;
};
[[nodiscard]] NsightNames names_used(const SqliteFile& file, const std::vector<NameUse>& uses);

/// A process: what stands above the 24 bits of the thread in globalTid and globalPid. NULL, where a version does not
/// tell: 0.
using NsightProcess = std::uint64_t;
[[nodiscard]] NsightProcess process_of(std::optional<std::int64_t> global);

/// The same time. Throws SpecError, without file, for one beyond kLargestTraceTimeNs.
std::int64_t checked_time_ns(std::int64_t ns);

struct NsightSpan {
  std::int64_t start_ns = 0, end_ns = 0;
};
/// Times in columns 0 and 1. Nothing: they are not known, which the profiler writes as NULL or 0. Throws SpecError,
/// without file, for an end before its start, and beyond kLargestTraceTimeNs.
[[nodiscard]] std::optional<NsightSpan> span_of(const SqliteRows& row);

/// Throws SpecError, and says what it is instead, for a database that is no export with GPU work.
void check_nsight(const SqliteFile& file);

namespace nsight {
inline const std::string kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
inline const std::string kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
inline const std::string kSets = "CUPTI_ACTIVITY_KIND_MEMSET";
inline const std::string kWholeGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
inline const std::string kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
inline const std::string kWaits = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
inline const std::string kRecorded = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
inline const std::string kRanges = "NVTX_EVENTS";
inline const std::string kNames = "StringIds";
inline const std::string kGpus = "TARGET_INFO_GPU";
inline const std::string kDevices = "TARGET_INFO_CUDA_DEVICE";
inline const std::string kSessionStart = "TARGET_INFO_SESSION_START_TIME";

/// Those whose rows are events of a GPU.
inline const std::vector<std::string> kGpuTables = {kKernels, kCopies, kSets, kWholeGraphs};
}  // namespace nsight

}  // namespace moeline
