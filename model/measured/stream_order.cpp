#include <algorithm>
#include <map>
#include <utility>

#include "measured/edges.hpp"

namespace moeline {
namespace {

constexpr std::size_t kMostOpen = 64;  // kernels of one stream at once; more are no stream's

using StreamOfGpu = std::pair<std::uint16_t, std::uint32_t>;

Node kernel(std::uint32_t event) { return {event, false}; }

}  // namespace

std::vector<Dependency> stream_order(const Trace& trace) {
  std::map<StreamOfGpu, std::vector<std::uint32_t>> unended;  // kernels whose end nobody has waited for, by start
  std::vector<Dependency> found;
  for (std::uint32_t i = 0; i < trace.gpu_events.size(); ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    std::vector<std::uint32_t>& open = unended[{event.gpu, event.stream}];
    const bool overlaps = !open.empty() && trace.gpu_events[open.back()].end_ns > event.start_ns;
    if (overlaps) found.push_back({kernel(open.back()), kernel(i), Reason::stream_order, Order::part_to_start});
    std::erase_if(open, [&](std::uint32_t before) {
      const bool ended = trace.gpu_events[before].end_ns <= event.start_ns;
      if (ended) found.push_back({kernel(before), kernel(i), Reason::stream_order});
      return ended;
    });
    if (open.size() == kMostOpen) open.erase(open.begin());
    open.push_back(i);
  }
  return found;
}

}  // namespace moeline
