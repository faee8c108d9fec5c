#include "measured/dependencies.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "measured/edges.hpp"

namespace moeline {
namespace {

Node gpu(std::int64_t event) { return {static_cast<std::uint32_t>(event), false}; }
Node call(std::int64_t index) { return {static_cast<std::uint32_t>(index), true}; }

void add_launches(const Launches& l, std::vector<Dependency>& found) {
  for (std::uint32_t i = 0; i < l.trace.gpu_events.size(); ++i) {
    const GpuEvent& event = l.trace.gpu_events[i];
    if (event.call >= 0 && l.launched_ns(i) <= event.start_ns) {
      found.push_back({call(event.call), gpu(i), Reason::launch});
    }
  }
}

Order order_of(const Trace& trace, const GpuFlow& flow) {
  if (flow.kind == FlowKind::end_to_end) return Order::end_to_end;
  if (flow.kind == FlowKind::start_to_start) return Order::start_to_start;
  const bool overlap = trace.gpu_events[flow.from].end_ns > trace.gpu_events[flow.to].start_ns;
  return overlap ? Order::part_to_start : Order::end_to_start;
}

void add_flows(const Trace& trace, std::vector<Dependency>& found) {
  for (const GpuFlow& flow : trace.flows) {
    found.push_back({gpu(flow.from), gpu(flow.to), Reason::flow, order_of(trace, flow)});
  }
}

}  // namespace

const std::string& name_of(Reason reason) {
  static const std::array<std::string, kReasons> names = {"stream_order", "launch", "host_order", "host_wait",
                                                          "event_wait",   "flow",   "start_time"};
  return names[static_cast<std::size_t>(reason)];
}

std::vector<Dependency> dependencies(const Trace& trace, const Interpretation& meaning) {
  const Launches launches(trace, meaning);
  std::vector<Dependency> found = launches.fifo;
  add_launches(launches, found);
  const auto add = [&](const std::vector<Dependency>& more) { found.insert(found.end(), more.begin(), more.end()); };
  add(host_order(launches));
  add(event_waits(launches));
  add_flows(trace, found);
  if (!trace.states_order) add(start_times(launches, found));
  return found;
}

std::vector<std::int64_t> launch_latencies_ns(const Trace& trace) {
  std::vector<std::int64_t> leads;
  std::vector<std::int64_t> latencies(trace.calls.size(), std::numeric_limits<std::int64_t>::max());
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.call < 0) continue;
    const std::int64_t lead = event.start_ns - trace.launched_ns(event);
    if (lead < 0) continue;
    leads.push_back(lead);
    std::int64_t& own = latencies[static_cast<std::size_t>(event.call)];
    own = std::min(own, lead);
  }
  if (leads.empty()) return std::vector<std::int64_t>(trace.calls.size(), 0);
  const auto quick = leads.begin() + static_cast<std::ptrdiff_t>(leads.size() / 100);
  std::nth_element(leads.begin(), quick, leads.end());
  for (std::int64_t& latency : latencies) latency = std::min(latency, *quick);
  return latencies;
}

}  // namespace moeline
