#include "timeline/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace moeline {
namespace {

using CallIterator = std::vector<CallRecord>::iterator;

// REQUIRES calls by correlation, then start. Calls without one bear -1.
CallIterator first_of(std::vector<CallRecord>& calls, std::int64_t correlation) {
  if (correlation < 0) return calls.end();
  const auto found =
      std::lower_bound(calls.begin(), calls.end(), correlation,
                       [](const CallRecord& call, std::int64_t wanted) { return call.correlation < wanted; });
  return found != calls.end() && found->correlation == correlation ? found : calls.end();
}

bool matters_alone(const CallRecord& record) { return record.call.kind != HostCallKind::launch; }

std::size_t unmatched(const std::vector<std::uint64_t>& ends, const std::vector<std::uint64_t>& starts) {
  std::vector<std::uint64_t> alone;
  std::set_difference(ends.begin(), ends.end(), starts.begin(), starts.end(), std::back_inserter(alone));
  return alone.size();
}

std::size_t overlapping(const TraceRecords& records) {
  struct Slice {
    Track track;
    std::int64_t start, end;
  };
  std::vector<Slice> slices;
  for (const GpuRecord& record : records.gpu)
    slices.push_back({record.track, record.event.start_ns, record.event.end_ns});
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return std::tie(a.track, a.start) < std::tie(b.track, b.start); });
  std::size_t count = 0;
  std::int64_t busy_until = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const bool first = i == 0 || slices[i].track != slices[i - 1].track;
    if (!first && slices[i].start < busy_until) ++count;
    busy_until = first ? slices[i].end : std::max(busy_until, slices[i].end);
  }
  return count;
}

}  // namespace

void find_calls(TraceRecords& records) {
  std::vector<CallRecord>& calls = records.calls;
  std::stable_sort(calls.begin(), calls.end(), [](const CallRecord& a, const CallRecord& b) {
    return std::tie(a.correlation, a.call.start_ns) < std::tie(b.correlation, b.call.start_ns);
  });
  std::vector<std::int32_t> place(calls.size(), -1);  // of the calls kept, by start
  const auto keep = [&](CallIterator call) {
    if (call != calls.end()) place[static_cast<std::size_t>(call - calls.begin())] = 0;
  };
  for (const GpuRecord& record : records.gpu) {
    if (record.correlation) keep(first_of(calls, *record.correlation));
  }
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (place[i] == 0 || matters_alone(calls[i])) kept.push_back(i);
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [&](std::size_t a, std::size_t b) { return calls[a].call.start_ns < calls[b].call.start_ns; });
  for (std::size_t i = 0; i < kept.size(); ++i) place[kept[i]] = static_cast<std::int32_t>(i);
  const auto place_of = [&](std::int64_t correlation) {
    const auto found = first_of(calls, correlation);
    return found == calls.end() ? -1 : place[static_cast<std::size_t>(found - calls.begin())];
  };
  for (GpuRecord& record : records.gpu) {
    if (record.correlation) record.event.call = place_of(*record.correlation);
  }
  for (const WaitRecord& wait : records.waits) {
    const auto found = first_of(calls, wait.correlation);
    if (found == calls.end()) continue;
    found->call.stream = wait.stream;
    found->call.source_stream = wait.source_stream;
    found->call.record = place_of(wait.record_correlation);
  }
  std::vector<CallRecord> by_start;
  by_start.reserve(kept.size());
  for (const std::size_t i : kept) by_start.push_back(calls[i]);
  calls = std::move(by_start);
}

void assign_flops(TraceRecords& records) {
  if (records.operator_flops.empty()) return;
  std::unordered_map<std::int64_t, GpuEvent*> longest;
  for (GpuRecord& record : records.gpu) {
    if (record.event.kind != GpuEventKind::kernel || !records.operator_flops.contains(record.external_id)) continue;
    GpuEvent*& kernel = longest[record.external_id];
    const auto length = [](const GpuEvent& event) { return event.end_ns - event.start_ns; };
    if (kernel == nullptr || length(record.event) > length(*kernel)) kernel = &record.event;
  }
  for (const auto& [id, kernel] : longest) kernel->flops = records.operator_flops.at(id);
}

std::vector<GpuFlow> gpu_flows(const TraceRecords& records) {
  std::vector<std::vector<std::uint32_t>> on_track(records.tracks());
  for (std::uint32_t i = 0; i < records.gpu.size(); ++i) on_track[records.gpu[i].track].push_back(i);
  const auto event_at = [&](const FlowRecord& flow) -> std::optional<std::uint32_t> {
    const std::vector<std::uint32_t>& events = on_track[flow.track];
    const auto after = std::partition_point(
        events.begin(), events.end(), [&](std::uint32_t i) { return records.gpu[i].event.start_ns <= flow.at_ns; });
    if (after == events.begin() || records.gpu[*std::prev(after)].event.end_ns < flow.at_ns) return std::nullopt;
    return *std::prev(after);
  };
  std::unordered_map<std::uint64_t, std::uint32_t> starts;
  for (const FlowRecord& flow : records.flows) {
    if (const auto event = flow.is_start ? event_at(flow) : std::nullopt) starts.emplace(flow.id, *event);
  }
  std::vector<GpuFlow> found;
  for (const FlowRecord& flow : records.flows) {
    const auto start = flow.is_start ? starts.end() : starts.find(flow.id);
    if (start == starts.end()) continue;
    const auto event = event_at(flow);
    if (event && start->second < *event) found.push_back({start->second, *event});
  }
  return found;
}

std::vector<std::string> tolerated(const TraceRecords& records) {
  std::vector<std::uint64_t> starts;
  std::vector<std::uint64_t> ends;
  for (const FlowRecord& flow : records.flows) (flow.is_start ? starts : ends).push_back(flow.id);
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  std::vector<std::string> notes;
  if (const std::size_t alone = unmatched(ends, starts); alone > 0) {
    notes.push_back(fmt::format("{} flow ends have no start", alone));
  }
  if (const std::size_t alone = unmatched(starts, ends); alone > 0) {
    notes.push_back(fmt::format("{} flow starts have no end", alone));
  }
  if (const std::size_t count = overlapping(records); count > 0) {
    notes.push_back(fmt::format("{} GPU events start before the one ahead of them on their stream has ended", count));
  }
  return notes;
}

}  // namespace moeline
