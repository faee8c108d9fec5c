// The host's side of an export of Nsight Systems: calls of CUDA, waits for events, ranges of NVTX.
#pragma once

#include "trace/nsight_tables.hpp"
#include "trace/trace_records.hpp"

namespace moeline {

/// Adds them to records that have the GPUs' events. Ranges of NVTX are annotations, but those of libraries that
/// annotate their own calls; one that never ended lasts as long as the records. Throws SpecError for rows that make no
/// sense.
void add_host_work(const SqliteFile& file, const NsightNames& names, TraceRecords& records);

}  // namespace moeline
