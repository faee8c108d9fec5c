#include "trace/assemble_trace.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "trace/attribute.hpp"
#include "trace/calls.hpp"
#include "trace/module_names.hpp"
#include "trace/steps.hpp"
#include "trace/trace_numbers.hpp"

namespace moeline {
namespace {

// "train_rank3.json.gz", "rank_3.json", "rank-3": 3; any other name: 0.
std::uint32_t rank_of_file_name(const std::string& name) {
  const std::size_t word = name.rfind("rank");
  if (word == std::string::npos) return 0;
  std::string_view rest = std::string_view(name).substr(word + 4);
  if (rest.starts_with('_') || rest.starts_with('-')) rest.remove_prefix(1);
  return whole_number<std::uint32_t>(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0);
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

// Ours say which layer they are of.
void name_phases_of_modules(TraceRecords& records) {
  for (AnnotationRecord& record : records.annotations) {
    if (!record.annotation.place) record.annotation.name = phase_of_module(record.annotation.name);
  }
}

void find_phases_and_steps(TraceRecords& records) {
  name_phases_of_modules(records);
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

Trace assemble(TraceRecords records, const TraceFacts& facts, const std::filesystem::path& path) {
  const std::string file_name = path.filename().string();
  Trace trace;
  trace.device = facts.device;
  trace.sms = facts.sms;
  trace.time_zero_ns = facts.base_time_ns + records.earliest_ns();
  trace.lone_flows = lone_flows(records);
  trace.notes = tolerated(records);
  trace.gpus = gpus_of(records, facts.rank ? *facts.rank : rank_of_file_name(file_name), trace.notes);
  count_from_earliest(records);
  refuse_ages(records, path.string());
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
