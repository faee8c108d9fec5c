#include "trace/read_nsight.hpp"

#include "trace/assemble_trace.hpp"
#include "trace/nsight_gpu.hpp"
#include "trace/nsight_host.hpp"
#include "trace/nsight_tables.hpp"
#include "trace/trace_numbers.hpp"

namespace moeline {
namespace {

TraceFacts facts_of(const SqliteFile& file, std::int64_t first_gpu) {
  TraceFacts facts;
  bool found = false;
  for_each_row(file, nsight::kGpus, {{{"id"}, false}, {{"name"}, false}, {{"smCount"}, false}},
               [&](const SqliteRows& row) {
                 if (found || (!facts.device.empty() && row.integer(0) != first_gpu)) return;
                 found = row.integer(0) == first_gpu;
                 facts.device = row.text(1);
                 facts.sms = whole_number<std::uint32_t>(row.text(2)).value_or(0);
               });
  for_each_row(file, nsight::kSessionStart, {{{"utcEpochNs"}, false}}, [&](const SqliteRows& row) {
    const std::int64_t start_ns = row.integer(0).value_or(0);
    if (start_ns >= 0 && start_ns <= kLargestTraceTimeNs) facts.base_time_ns = start_ns;
  });
  return facts;
}

}  // namespace

Trace read_nsight(const std::filesystem::path& path) {
  const SqliteFile file(path);
  check_nsight(file);
  const NsightNames names = names_used(file, {{nsight::kKernels, "demangledName"},
                                              {nsight::kKernels, "shortName"},
                                              {nsight::kKernels, "mangledName"},
                                              {nsight::kCalls, "nameId"},
                                              {nsight::kRanges, "textId"}});
  TraceRecords records;
  const NsightGpuWork work = add_gpu_work(file, names, records);
  if (records.gpu.empty()) throw file.error("no GPU events: its tables of kernels, copies and sets have no rows");
  add_host_work(file, names, records);
  Trace trace = assemble(std::move(records), facts_of(file, work.first_gpu), path);
  trace.notes.insert(trace.notes.end(), work.notes.begin(), work.notes.end());
  return trace;
}

}  // namespace moeline
