#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"
#include "trace/attribute.hpp"
#include "trace/calls.hpp"
#include "trace/foreign_files.hpp"
#include "trace/gzip_stream.hpp"
#include "trace/steps.hpp"
#include "trace/trace.hpp"
#include "trace/trace_handler.hpp"
#include "trace/trace_numbers.hpp"

namespace moeline {
namespace {

bool begins_like_json(const GzipStream& stream) {
  const std::size_t first = stream.beginning().find_first_not_of(" \t\r\n");
  return first != std::string::npos && (stream.beginning()[first] == '{' || stream.beginning()[first] == '[');
}

std::string problem(const rapidjson::ParseResult& result, const TraceHandler& handler, const GzipStream& stream) {
  if (!handler.refusal.empty()) return handler.refusal;
  const bool blank = result.Code() == rapidjson::kParseErrorDocumentEmpty;
  if (blank && stream.at_end()) return "is empty";
  if (stream.at_end()) return fmt::format("truncated: its JSON breaks off at byte {}", stream.Tell());
  const std::string hint = begins_like_json(stream) ? "" : fmt::format("; {}", kWhatIsRead);
  if (blank || !result.IsError()) return fmt::format("not valid JSON at byte {}: a zero byte{}", stream.Tell(), hint);
  return fmt::format("not valid JSON at byte {}: {}{}", result.Offset(), rapidjson::GetParseError_En(result.Code()),
                     hint);
}

void parse(GzipStream& stream, TraceHandler& handler, const std::string& file) {
  // Iterative: deep nesting must not exhaust the stack. NaN: some writers put it in args, where it does no harm.
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!result.IsError() && stream.at_end()) return;
  const std::optional<std::string_view> foreign = foreign_file(file, stream.beginning());
  if (foreign && !stream.beginning().empty() && !begins_like_json(stream))
    throw SpecError(file, 0, fmt::format("is {}; {}", *foreign, kWhatIsRead));
  const std::string message = problem(result, handler, stream);
  stream.drain();  // if the gzip data is damaged, that is what is wrong
  throw SpecError(file, 0, message);
}

// "train_rank3.json.gz", "rank_3.json", "rank-3": 3; any other name: 0.
std::uint32_t rank_of_file_name(const std::string& name) {
  const std::size_t word = name.rfind("rank");
  if (word == std::string::npos) return 0;
  std::string_view rest = std::string_view(name).substr(word + 4);
  if (rest.starts_with('_') || rest.starts_with('-')) rest.remove_prefix(1);
  return whole_number<std::uint32_t>(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0);
}

std::uint32_t rank_of(const TraceHandler& handler, const std::filesystem::path& path) {
  if (handler.rank.empty()) return rank_of_file_name(path.filename().string());
  const auto rank = whole_number<std::uint32_t>(handler.rank);
  if (rank) return *rank;
  throw SpecError(path.string(), 0, fmt::format("distributedInfo.rank '{}' is not a rank", one_line(handler.rank)));
}

// "rank 3" in the name of a process.
std::optional<std::uint32_t> rank_of_process(const TraceRecords& records, const std::string& pid) {
  const auto name = records.processes.find(pid);
  if (name == records.processes.end()) return std::nullopt;
  const std::size_t word = name->second.find("rank ");
  if (word == std::string::npos) return std::nullopt;
  return whole_number<std::uint32_t>(std::string_view(name->second).substr(word + 5));
}

// One GPU process is the file's rank. Several have theirs in their names, as in a trace that holds two timelines.
std::vector<TraceGpu> gpus_of(const TraceRecords& records, std::uint32_t of_file, std::vector<std::string>& notes) {
  std::vector<TraceGpu> gpus;
  std::set<std::uint32_t> ranks;
  for (const std::string& pid : records.gpus) {
    const auto position = static_cast<std::uint32_t>(gpus.size());
    gpus.push_back({pid, records.gpus.size() == 1 ? of_file : rank_of_process(records, pid).value_or(position)});
    ranks.insert(gpus.back().rank);
  }
  if (ranks.size() == gpus.size()) return gpus;
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].rank = static_cast<std::uint32_t>(i);
  notes.emplace_back("GPU processes share a rank; they are numbered by first appearance");
  return gpus;
}

std::int64_t base_time_ns(const TraceHandler& handler, const std::string& file) {
  if (handler.base_time.empty()) return 0;
  const auto base = whole_number<std::int64_t>(handler.base_time);
  if (base && *base >= 0 && *base <= kLargestTraceTimeNs) return *base;
  throw SpecError(file, 0, fmt::format("baseTimeNanoseconds '{}' is not a time", one_line(handler.base_time)));
}

void count_from_earliest(TraceRecords& records) {
  const std::int64_t earliest = records.earliest_ns();
  for (GpuRecord& record : records.gpu) {
    record.event.start_ns -= earliest;
    record.event.end_ns -= earliest;
  }
  for (auto& [annotation, track] : records.annotations) {
    annotation.start_ns -= earliest;
    annotation.end_ns -= earliest;
  }
  for (FlowRecord& flow : records.flows) flow.at_ns -= earliest;
  for (CallRecord& record : records.calls) {
    record.call.start_ns -= earliest;
    record.call.end_ns -= earliest;
  }
}

// Times downstream are picoseconds in an int64, which holds 106 days, and durations are summed behind the start.
void refuse_ages(const TraceRecords& records, const std::string& file) {
  constexpr std::int64_t kDayNs = 86'400'000'000'000;
  constexpr std::int64_t kLongestNs = 11 * kDayNs;
  constexpr std::int64_t kMostNs = 90 * kDayNs;
  std::int64_t last = 0;
  std::int64_t sum = 0;
  for (const GpuRecord& record : records.gpu) {
    last = std::max(last, record.event.end_ns);
    if (last <= kLongestNs) sum = std::min(kMostNs + 1, sum + record.event.end_ns - record.event.start_ns);
  }
  for (const CallRecord& record : records.calls) last = std::max(last, record.call.end_ns);
  for (const AnnotationRecord& record : records.annotations) last = std::max(last, record.annotation.end_ns);
  if (last > kLongestNs) throw SpecError(file, 0, "lasts longer than 11 days");
  if (sum > kMostNs) throw SpecError(file, 0, "its GPU events last longer than 90 days in all");
}

void sort(TraceRecords& records) {
  std::stable_sort(records.gpu.begin(), records.gpu.end(), [](const GpuRecord& a, const GpuRecord& b) {
    return std::tie(a.event.start_ns, a.event.stream) < std::tie(b.event.start_ns, b.event.stream);
  });
  // Longer ones first, so that what is inside stands behind what is around it.
  std::stable_sort(records.annotations.begin(), records.annotations.end(),
                   [](const AnnotationRecord& a, const AnnotationRecord& b) {
                     return std::tie(a.annotation.start_ns, b.annotation.end_ns) <
                            std::tie(b.annotation.start_ns, a.annotation.end_ns);
                   });
}

void find_phases_and_steps(TraceRecords& records) {
  Levels levels = levels_of(records);
  attribute(records, levels.of);
  if (levels.by_profiler) {  // there may be steps whose names nobody knows
    const std::set<std::string> names = names_around_repetitions(records);
    if (!names.empty()) {
      levels = levels_of(records, names);
      attribute(records, levels.of);
    }
  }
  find_steps(records, levels);
}

}  // namespace

Trace read_trace(const std::filesystem::path& path) {
  const std::string file = path.string();
  GzipStream stream(path);
  TraceHandler handler(stream);
  parse(stream, handler, file);
  TraceRecords& records = handler.records;
  if (!handler.has_events) throw SpecError(file, 0, "not a trace: it has no array traceEvents");
  if (records.gpu.empty()) throw SpecError(file, 0, "no GPU events (kernel, gpu_memcpy, gpu_memset) among its events");

  Trace trace;
  trace.device = handler.device;
  trace.sms = whole_number<std::uint32_t>(handler.sms).value_or(0);
  trace.time_zero_ns = base_time_ns(handler, file) + records.earliest_ns();
  trace.lone_flows = lone_flows(records);
  trace.notes = tolerated(records);
  trace.gpus = gpus_of(records, rank_of(handler, path), trace.notes);
  count_from_earliest(records);
  refuse_ages(records, file);
  sort(records);
  find_calls(records);
  find_phases_and_steps(records);
  assign_flops(records);
  trace.flows = gpu_flows(records);
  trace.names = std::move(records.names);
  trace.gpu_events.reserve(records.gpu.size());
  for (const GpuRecord& record : records.gpu) trace.gpu_events.push_back(record.event);
  for (const CallRecord& record : records.calls) trace.calls.push_back(record.call);
  trace.steps = std::move(records.steps);
  for (AnnotationRecord& record : records.annotations) trace.annotations.push_back(std::move(record.annotation));
  return trace;
}

}  // namespace moeline
