#include "trace/nsight_host.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace moeline {
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
      if (known != names_.end()) record.call.kind = kind_of_call(known->second);
      record.call.start_ns = span->start_ns;
      record.call.end_ns = span->end_ns;
      const HostThread thread = thread_of(row.integer(2));
      record.call.process = thread.process;
      record.track = thread.track;
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

}  // namespace

void add_host_work(const SqliteFile& file, const NsightNames& names, TraceRecords& records) {
  HostReader reader(file, names, records);
  reader.add_calls();
  reader.add_waits();
  reader.add_ranges();
}

}  // namespace moeline
