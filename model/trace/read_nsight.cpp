#include "trace/read_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "trace/assemble_trace.hpp"
#include "trace/nsight_tables.hpp"
#include "trace/trace_records.hpp"

namespace moeline {

// The GPUs of an export of Nsight Systems, and what ran on them.

namespace {

struct NsightGpuWork {
  std::int64_t first_gpu = 0;      ///< number in the machine of the first GPU
  std::vector<std::string> notes;  ///< what was tolerated, in words
};

constexpr std::size_t kMostGpus = 4096;

struct DeviceOfProcess {
  std::int64_t physical = 0;  // number of the GPU in the machine
  NsightProcess process = 0;
  std::int64_t device = 0;

  auto operator<=>(const DeviceOfProcess&) const = default;
};

std::string name_of_copy(std::int64_t kind) {
  constexpr const char* kCopies[] = {"Memcpy",      "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
                                     "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
                                     "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
  return kind >= 0 && kind < static_cast<std::int64_t>(std::size(kCopies)) ? kCopies[kind] : kCopies[0];
}

// CUPTI_ACTIVITY_MEMORY_KIND: a copy from or to pageable memory may hold up the host.
const char* name_of_memory(std::int64_t kind) {
  constexpr const char* kKinds[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                    "Array",   "Managed",  "Device Static", "Managed Static"};
  return kind >= 0 && kind < static_cast<std::int64_t>(std::size(kKinds)) ? kKinds[kind] : kKinds[0];
}

std::string name_of_copy(std::int64_t kind, std::int64_t source, std::int64_t target) {
  const std::string name = name_of_copy(kind);
  if (source == 0 && target == 0) return name;
  return fmt::format("{} ({} -> {})", name, name_of_memory(source), name_of_memory(target));
}

class GpuReader {
 public:
  GpuReader(const SqliteFile& file, const NsightNames& names, TraceRecords& records)
      : file_(file), names_(names), records_(records) {}

  NsightGpuWork read() {
    find_gpus();
    add_kernels();
    add_copies();
    add_sets();
    add_whole_graphs();
    if (untimed_ > 0) work_.notes.push_back(fmt::format("{} GPU events without times are left out", untimed_));
    return std::move(work_);
  }

 private:
  // Of a GPU event: its times, then these.
  enum GpuColumn : std::uint8_t { kDevice = 2, kStream, kCorrelation, kProcess, kOwn };
  static std::vector<NsightColumn> gpu_columns(const std::vector<NsightColumn>& own) {
    std::vector<NsightColumn> columns = {
        {{"start"}},           {{"end"}}, {{"deviceId"}, false}, {{"streamId"}}, {{"correlationId"}, false},
        {{"globalPid"}, false}};
    columns.insert(columns.end(), own.begin(), own.end());
    return columns;
  }

  [[nodiscard]] const std::string& name(std::optional<std::int64_t> id) const {
    const auto found = names_.find(id.value_or(0));
    if (id && found != names_.end()) return found->second;
    throw SpecError(fmt::format("its name {} is not in {}", id ? std::to_string(*id) : "NULL", nsight::kNames));
  }

  // In the order of the GPUs in the machine, which is that of ranks, whichever ran first.
  void find_gpus() {
    std::map<std::pair<NsightProcess, std::int64_t>, std::int64_t> physical;
    for_each_row(file_, nsight::kDevices, {{{"pid"}}, {{"cudaId"}}, {{"gpuId"}}}, [&](const SqliteRows& row) {
      physical[{static_cast<NsightProcess>(row.integer(0).value_or(0)), row.integer(1).value_or(0)}] =
          row.integer(2).value_or(0);
    });
    constexpr NsightProcess kPidBits = 0xffffff;
    std::set<DeviceOfProcess> found;
    bool processes_known = true;
    for (const std::string& table : nsight::kGpuTables) {
      for_each_row(
          file_, table, {{{"globalPid"}, false}, {{"deviceId"}, false}},
          [&](const SqliteRows& row) {
            const NsightProcess process = process_of(row.integer(0));
            const std::int64_t device = row.integer(1).value_or(0);
            const auto known = physical.find({process & kPidBits, device});
            found.insert({known == physical.end() ? device : known->second, process, device});
            processes_known = processes_known && !row.is_null(0);
            if (found.size() > kMostGpus) throw SpecError(fmt::format("is of GPU number {}", kMostGpus + 1));
          },
          "DISTINCT");
    }
    for (const auto& [number, process, device] : found) {
      if (gpus_.empty()) work_.first_gpu = number;
      const std::string pid = fmt::format("{} GPU {}", process, device);
      gpus_[{process, device}] = records_.gpu_number(pid);
      if (processes_known) records_.host_of_gpu.push_back(records_.host_number(std::to_string(process)));
    }
  }

  // Completes and keeps an event whose own columns the caller has read. False: it has no times.
  bool add_gpu(const SqliteRows& row, GpuEvent event) {
    const std::optional<NsightSpan> span = span_of(row);
    if (!span) ++untimed_;
    if (!span) return false;
    event.start_ns = span->start_ns;
    event.end_ns = span->end_ns;
    event.gpu = gpus_.at({process_of(row.integer(kProcess)), row.integer(kDevice).value_or(0)});
    const std::int64_t stream = row.integer(kStream).value_or(0);
    event.stream = static_cast<std::uint32_t>(stream);
    if (stream != event.stream) throw SpecError(fmt::format("streamId {} is not a stream", stream));
    const auto [known, is_new] = streams_.try_emplace({event.gpu, event.stream}, 0);
    if (is_new) known->second = records_.track(records_.gpus[event.gpu], std::to_string(event.stream));
    records_.count_start(event.start_ns);
    records_.gpu.push_back({event, known->second, row.integer(kCorrelation), 0});
    return true;
  }

  void add_kernels() {
    const std::vector<NsightColumn> columns = gpu_columns(
        {{{"demangledName", "shortName", "mangledName"}}, {{"gridX"}, false}, {{"gridY"}, false}, {{"gridZ"}, false}});
    for_each_row(file_, nsight::kKernels, columns, [&](const SqliteRows& row) {
      const auto extent = [&](int column) { return static_cast<double>(row.integer(column).value_or(0)); };
      GpuEvent event;
      event.name = records_.name_number(name(row.integer(kOwn)));
      event.blocks = blocks_of(extent(kOwn + 1), extent(kOwn + 2), extent(kOwn + 3));
      add_gpu(row, event);
    });
  }

  void add_copies() {
    const std::vector<NsightColumn> columns =
        gpu_columns({{{"copyKind"}, false}, {{"bytes"}, false}, {{"srcKind"}, false}, {{"dstKind"}, false}});
    for_each_row(file_, nsight::kCopies, columns, [&](const SqliteRows& row) {
      GpuEvent event;
      event.kind = GpuEventKind::memcpy;
      const auto kind = [&](int column) { return row.integer(column).value_or(0); };
      event.name = records_.name_number(name_of_copy(kind(kOwn), kind(kOwn + 2), kind(kOwn + 3)));
      event.bytes = std::max<std::int64_t>(0, row.integer(kOwn + 1).value_or(0));
      add_gpu(row, event);
    });
  }

  void add_sets() {
    for_each_row(file_, nsight::kSets, gpu_columns({{{"bytes"}, false}}), [&](const SqliteRows& row) {
      GpuEvent event;
      event.kind = GpuEventKind::memset;
      event.name = records_.name_number("Memset (Device)");
      event.bytes = std::max<std::int64_t>(0, row.integer(kOwn).value_or(0));
      add_gpu(row, event);
    });
  }

  void add_whole_graphs() {
    std::size_t graphs = 0;
    for_each_row(file_, nsight::kWholeGraphs, gpu_columns({{{"graphId"}, false}}), [&](const SqliteRows& row) {
      GpuEvent event;
      event.name = records_.name_number(fmt::format("CUDA graph {}", row.integer(kOwn).value_or(0)));
      if (add_gpu(row, event)) ++graphs;
    });
    if (graphs == 0) return;
    work_.notes.push_back(fmt::format(
        "{} launches of CUDA graphs are recorded as a whole and count as one kernel each: what runs in them, "
        "also what communicates, is not in the export; `nsys profile --cuda-graph-trace=node` records it",
        graphs));
  }

  const SqliteFile& file_;
  const NsightNames& names_;
  TraceRecords& records_;
  NsightGpuWork work_;
  std::map<std::pair<NsightProcess, std::int64_t>, std::uint16_t> gpus_;  // by process and its number of the device
  std::map<std::pair<std::uint16_t, std::uint32_t>, Track> streams_;      // by GPU
  std::size_t untimed_ = 0;
};

/// Adds kernels, copies and sets, and graphs that were recorded as a whole. Correlations, devices and streams are
/// numbered anew in every process: each pair of a process and a device is a GPU, in the order of the GPUs in the
/// machine. Throws SpecError for rows that make no sense.
NsightGpuWork add_gpu_work(const SqliteFile& file, const NsightNames& names, TraceRecords& records) {
  return GpuReader(file, names, records).read();
}

}  // namespace

// The host's side of an export of Nsight Systems: calls of CUDA, waits for events, ranges of NVTX.

namespace {

// Libraries that annotate their own calls: no phases of the program.
bool is_library(std::string_view domain) {
  constexpr std::string_view kLibraries[] = {"NCCL",     "CCCL",     "cuBLAS",  "cuDNN", "cuFFT",
                                             "cuSPARSE", "cuSOLVER", "NVSHMEM", "UCX",   "libcudf"};
  return std::any_of(std::begin(kLibraries), std::end(kLibraries),
                     [&](std::string_view library) { return domain.starts_with(library); });
}

class HostReader {
 public:
  HostReader(const SqliteFile& file, const NsightNames& names, TraceRecords& records)
      : file_(file), names_(names), records_(records) {}

  void add_calls() {
    const std::vector<NsightColumn> columns = {
        {{"start"}}, {{"end"}}, {{"globalTid"}, false}, {{"correlationId"}, false}, {{"nameId"}, false}};
    for_each_row(file_, nsight::kCalls, columns, [&](const SqliteRows& row) {
      const std::optional<NsightSpan> span = span_of(row);
      if (!span) return;
      const auto known = names_.find(row.integer(4).value_or(-1));
      CallRecord record;
      record.correlation = row.integer(3).value_or(-1);
      if (known != names_.end()) {
        record.call.kind = kind_of_call(known->second);
        record.may_block = is_synchronous_copy(known->second);
      }
      record.call.start_ns = span->start_ns;
      record.call.end_ns = span->end_ns;
      const HostThread thread = thread_of(row.integer(2));
      record.call.process = thread.process;
      record.call.thread = record.track = thread.track;
      records_.count_start(span->start_ns);
      records_.calls.push_back(record);
    });
  }

  void add_waits() {
    const std::map<CudaEvent, RecordsOfEvent> recorded = records_by_event();
    std::vector<NsightColumn> columns = kEventColumns;
    columns.push_back({{"syncType"}});
    constexpr std::int64_t kStreamWaitsForEvent = 2;  // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT
    for_each_row(file_, nsight::kWaits, columns, [&](const SqliteRows& row) {
      if (row.integer(5) != kStreamWaitsForEvent) return;
      WaitRecord wait;
      wait.correlation = row.integer(4).value_or(-1);
      wait.stream = row.integer(3).value_or(-1);
      if (!row.is_null(0)) wait.process = records_.host_number(std::to_string(process_of(row.integer(0))));
      const auto event = recorded.find(event_of(row));
      if (event != recorded.end()) find_record(event->second, wait);
      records_.waits.push_back(wait);
    });
  }

  void add_ranges() {
    constexpr std::int64_t kPushPop = 59;
    constexpr std::int64_t kStartEnd = 60;
    constexpr std::int64_t kDomain = 75;
    const std::vector<NsightColumn> columns = {{{"start"}},          {{"end"}},           {{"eventType"}, false},
                                               {{"text"}, false},    {{"textId"}, false}, {{"globalTid"}, false},
                                               {{"domainId"}, false}};
    std::set<std::pair<NsightProcess, std::int64_t>> libraries;
    const auto domain_of = [](const SqliteRows& row) {
      return std::pair(process_of(row.integer(5)), row.integer(6).value_or(0));
    };
    for_each_row(file_, nsight::kRanges, columns, [&](const SqliteRows& row) {
      if (row.integer(2) == kDomain && is_library(text_of_range(row))) libraries.insert(domain_of(row));
    });
    for_each_row(file_, nsight::kRanges, columns, [&](const SqliteRows& row) {
      const std::int64_t type = row.integer(2).value_or(kPushPop);
      if ((type != kPushPop && type != kStartEnd) || libraries.contains(domain_of(row)) || row.is_null(0)) return;
      add_range(row);
    });
  }

 private:
  struct HostThread {
    std::uint16_t process = 0;
    Track track = 0;
  };
  using CudaEvent = std::tuple<NsightProcess, std::int64_t, std::int64_t>;  // by context and number
  using RecordsOfEvent = std::map<std::int64_t, std::int64_t>;              // streams, by the record's correlation
  inline static const std::vector<NsightColumn> kEventColumns = {
      {{"globalPid"}, false}, {{"contextId"}, false}, {{"eventId"}}, {{"streamId"}}, {{"correlationId"}}};

  static CudaEvent event_of(const SqliteRows& row) {
    return {process_of(row.integer(0)), row.integer(1).value_or(0), row.integer(2).value_or(-1)};
  }

  [[nodiscard]] std::map<CudaEvent, RecordsOfEvent> records_by_event() const {
    std::map<CudaEvent, RecordsOfEvent> recorded;
    for_each_row(file_, nsight::kRecorded, kEventColumns, [&](const SqliteRows& row) {
      recorded[event_of(row)][row.integer(4).value_or(-1)] = row.integer(3).value_or(-1);
    });
    return recorded;
  }

  // The latest before the wait: correlations rise with the calls of a process.
  static void find_record(const RecordsOfEvent& records, WaitRecord& wait) {
    const auto after = records.lower_bound(wait.correlation);
    if (after == records.begin()) return;
    std::tie(wait.record_correlation, wait.source_stream) = *std::prev(after);
  }

  [[nodiscard]] std::string text_of_range(const SqliteRows& row) const {
    std::string text = row.text(3);
    if (!text.empty()) return text;
    const auto known = names_.find(row.integer(4).value_or(-1));
    return known == names_.end() ? "" : known->second;
  }

  // One that never ended has NULL or, in older exports, 0 or -1 for its end.
  [[nodiscard]] std::optional<NsightSpan> span_of_range(const SqliteRows& row) {
    const std::int64_t start = row.integer(0).value_or(0);
    const std::int64_t end = row.integer(1).value_or(0);
    if (row.is_null(0) || end > std::min<std::int64_t>(0, start)) return span_of(row);
    return NsightSpan{checked_time_ns(start), std::max(start, last_ns())};
  }

  std::int64_t last_ns() {
    if (last_ns_) return *last_ns_;
    last_ns_ = records_.earliest_ns();
    for (const GpuRecord& record : records_.gpu) last_ns_ = std::max(*last_ns_, record.event.end_ns);
    for (const CallRecord& record : records_.calls) last_ns_ = std::max(*last_ns_, record.call.end_ns);
    return *last_ns_;
  }

  void add_range(const SqliteRows& row) {
    const std::optional<NsightSpan> span = span_of_range(row);
    const std::string name = text_of_range(row);
    if (!span || name.empty()) return;
    records_.count_start(span->start_ns);
    records_.annotations.push_back(
        {{name, false, span->start_ns, span->end_ns, std::nullopt}, thread_of(row.integer(5)).track});
  }

  HostThread thread_of(std::optional<std::int64_t> global) {
    const auto [known, is_new] = threads_.try_emplace(global.value_or(0));
    if (is_new) {
      const std::string pid = std::to_string(process_of(global));
      known->second = {records_.host_number(pid), records_.track(pid, std::to_string(known->first))};
    }
    return known->second;
  }

  const SqliteFile& file_;
  const NsightNames& names_;
  TraceRecords& records_;
  std::map<std::int64_t, HostThread> threads_;  // by globalTid
  std::optional<std::int64_t> last_ns_;         // end of the GPUs' events and the calls
};

/// Adds them to records that have the GPUs' events. Ranges of NVTX are annotations, but those of libraries that
/// annotate their own calls; one that never ended lasts as long as the records. Throws SpecError for rows that make no
/// sense.
void add_host_work(const SqliteFile& file, const NsightNames& names, TraceRecords& records) {
  HostReader reader(file, names, records);
  reader.add_calls();
  reader.add_waits();
  reader.add_ranges();
}

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
