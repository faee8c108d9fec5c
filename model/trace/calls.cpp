#include "trace/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "trace/copy_path.hpp"

namespace moeline {
namespace {

using CallIterator = std::vector<CallRecord>::iterator;

// Of one process the first with this correlation. REQUIRES calls by correlation, process, start. Calls without a
// correlation bear -1.
CallIterator first_of(std::vector<CallRecord>& calls, std::int64_t correlation, std::uint32_t process) {
  if (correlation < 0) return calls.end();
  const auto before = [](const CallRecord& call, const std::pair<std::int64_t, std::uint32_t>& wanted) {
    return std::pair(call.correlation, call.call.process) < wanted;
  };
  const auto found = std::lower_bound(calls.begin(), calls.end(), std::pair(correlation, process), before);
  const bool same = found != calls.end() && found->correlation == correlation && found->call.process == process;
  return same ? found : calls.end();
}

// The process that launched a GPU's events, where the file does not say. Correlations count from the same number in
// every process, so of several the one is taken whose calls fit most events, and stand nearest before them.
std::vector<std::uint32_t> hosts_of_gpus(TraceRecords& records) {
  struct Fit {
    std::int64_t events = 0, lead_ns = 0;
  };
  std::vector<std::uint32_t> hosts(records.gpus.size(), 0);
  if (records.hosts.size() <= 1) return hosts;
  if (!records.host_of_gpu.empty()) return records.host_of_gpu;
  constexpr std::int64_t kEnough = 1000;
  std::vector<std::vector<Fit>> fits(records.gpus.size(), std::vector<Fit>(records.hosts.size()));
  std::vector<std::int64_t> asked(records.gpus.size(), 0);
  for (const GpuRecord& record : records.gpu) {
    if (!record.correlation || ++asked[record.event.gpu] > kEnough) continue;
    for (std::uint32_t host = 0; host < records.hosts.size(); ++host) {
      const auto call = first_of(records.calls, *record.correlation, host);
      if (call == records.calls.end() || call->call.start_ns > record.event.start_ns) continue;
      Fit& fit = fits[record.event.gpu][host];
      ++fit.events;
      fit.lead_ns += (record.event.start_ns - call->call.start_ns) / kEnough;
    }
  }
  for (std::size_t gpu = 0; gpu < hosts.size(); ++gpu) {
    const auto best = std::min_element(fits[gpu].begin(), fits[gpu].end(), [](const Fit& a, const Fit& b) {
      return a.events != b.events ? a.events > b.events : a.lead_ns < b.lead_ns;
    });
    hosts[gpu] = static_cast<std::uint32_t>(best - fits[gpu].begin());
  }
  return hosts;
}

bool matters_alone(const CallRecord& record) { return record.call.kind != HostCallKind::launch; }

std::size_t unmatched(const std::vector<std::uint64_t>& ids, const std::vector<std::uint64_t>& others) {
  std::vector<std::uint64_t> alone;
  std::set_difference(ids.begin(), ids.end(), others.begin(), others.end(), std::back_inserter(alone));
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

// A copy between device and host whose call was still there when it ended. Copies inside the device, and those of
// pinned memory by an asynchronous call, are never waited for: a call that outlives them is slow.
void find_blocking_copies(TraceRecords& records) {
  for (const GpuRecord& record : records.gpu) {
    if (record.event.kind != GpuEventKind::memcpy || record.event.call < 0) continue;
    CallRecord& call = records.calls[static_cast<std::size_t>(record.event.call)];
    const std::string& name = records.names[record.event.name].name;
    const CopyPath path = copy_path(record.event.kind, name);
    const bool in_device = path == CopyPath::in_memory || path == CopyPath::peer;
    const bool pageable = name.find("Pageable") != std::string::npos;
    const bool outlived = call.call.end_ns >= record.event.end_ns;
    if (outlived && !in_device && (pageable || call.may_block)) call.call.blocks = true;
  }
}

// Ends are ordered by time, and what happens at one instant by the events' own order: so no circle can arise.
bool follows(const TraceRecords& records, std::uint32_t from, std::uint32_t to, FlowKind kind) {
  if (kind != FlowKind::end_to_end) return from < to;
  const std::int64_t from_ns = records.gpu[from].event.end_ns;
  const std::int64_t to_ns = records.gpu[to].event.end_ns;
  return from_ns < to_ns || (from_ns == to_ns && from < to);
}

}  // namespace

void find_calls(TraceRecords& records) {
  std::vector<CallRecord>& calls = records.calls;
  std::stable_sort(calls.begin(), calls.end(), [](const CallRecord& a, const CallRecord& b) {
    return std::tie(a.correlation, a.call.process, a.call.start_ns) <
           std::tie(b.correlation, b.call.process, b.call.start_ns);
  });
  const std::vector<std::uint32_t> hosts = hosts_of_gpus(records);
  std::vector<std::int32_t> place(calls.size(), -1);  // of the calls kept, by start
  const auto keep = [&](CallIterator call) {
    if (call != calls.end()) place[static_cast<std::size_t>(call - calls.begin())] = 0;
  };
  for (const GpuRecord& record : records.gpu) {
    if (record.correlation) keep(first_of(calls, *record.correlation, hosts[record.event.gpu]));
  }
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (place[i] == 0 || matters_alone(calls[i])) kept.push_back(i);
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [&](std::size_t a, std::size_t b) { return calls[a].call.start_ns < calls[b].call.start_ns; });
  for (std::size_t i = 0; i < kept.size(); ++i) place[kept[i]] = static_cast<std::int32_t>(i);
  const auto place_of = [&](std::int64_t correlation, std::uint32_t process) {
    const auto found = first_of(calls, correlation, process);
    return found == calls.end() ? -1 : place[static_cast<std::size_t>(found - calls.begin())];
  };
  for (GpuRecord& record : records.gpu) {
    if (record.correlation) record.event.call = place_of(*record.correlation, hosts[record.event.gpu]);
  }
  for (const WaitRecord& wait : records.waits) {
    for (std::uint32_t process = 0; process < records.hosts.size(); ++process) {
      if (wait.process >= 0 && wait.process != process) continue;
      const auto found = first_of(calls, wait.correlation, process);
      if (found == calls.end()) continue;
      found->call.stream = wait.stream;
      found->call.source_stream = wait.source_stream;
      found->call.record = place_of(wait.record_correlation, process);
      break;
    }
  }
  std::vector<CallRecord> by_start;
  by_start.reserve(kept.size());
  for (const std::size_t i : kept) by_start.push_back(calls[i]);
  calls = std::move(by_start);
  find_blocking_copies(records);
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
    if (event && follows(records, start->second, *event, flow.kind))
      found.push_back({start->second, *event, flow.kind});
  }
  return found;
}

LoneFlows lone_flows(const TraceRecords& records) {
  std::vector<std::uint64_t> starts;
  std::vector<std::uint64_t> ends;
  for (const FlowRecord& flow : records.flows) (flow.is_start ? starts : ends).push_back(flow.id);
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  return {unmatched(starts, ends), unmatched(ends, starts)};
}

std::vector<std::string> tolerated(const TraceRecords& records) {
  const std::size_t count = overlapping(records);
  if (count == 0) return {};
  return {fmt::format("{} GPU events start before the one ahead of them on their stream has ended", count)};
}

}  // namespace moeline
