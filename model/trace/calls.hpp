// Which call of the host stands behind each GPU event, and what else the records tell once all of them are there.
#pragma once

#include <string>
#include <vector>

#include "trace/trace_records.hpp"

namespace moeline {

/// Keeps the calls that launched something, waited or recorded, by start; sets GpuEvent::call by correlation. Of
/// several calls with one correlation the first counts: a driver call stands inside the runtime call that made it.
/// Completes waits by the synchronisation events of the same correlation.
void find_calls(TraceRecords& records);

/// FLOPs of matrix products, from the operator with the same External id: the longest kernel of each gets them.
void assign_flops(TraceRecords& records);

/// Flows whose two ends lie in GPU events: those between kernels. Launch flows say what correlations say.
[[nodiscard]] std::vector<GpuFlow> gpu_flows(const TraceRecords& records);

/// Flows that have one end only. Profilers write many: those of what was launched before the profile began.
[[nodiscard]] LoneFlows lone_flows(const TraceRecords& records);

/// In words: events that overlap on one stream. REQUIRES events as in the file.
[[nodiscard]] std::vector<std::string> tolerated(const TraceRecords& records);

}  // namespace moeline
