// The GPUs of an export of Nsight Systems, and what ran on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/nsight_tables.hpp"
#include "trace/trace_records.hpp"

namespace moeline {

struct NsightGpuWork {
  std::int64_t first_gpu = 0;      ///< number in the machine of the first GPU
  std::vector<std::string> notes;  ///< what was tolerated, in words
};

/// Adds kernels, copies and sets, and graphs that were recorded as a whole. Correlations, devices and streams are
/// numbered anew in every process: each pair of a process and a device is a GPU, in the order of the GPUs in the
/// machine. Throws SpecError for rows that make no sense.
[[nodiscard]] NsightGpuWork add_gpu_work(const SqliteFile& file, const NsightNames& names, TraceRecords& records);

}  // namespace moeline
