#include "measured/copies.hpp"

#include <algorithm>
#include <array>

namespace moeline {

double moved_bytes(CopyPath path, const GpuEvent& event) {
  return std::max(1.0, passes_through_memory(path)) * static_cast<double>(event.bytes);
}

std::vector<CopyUse> copies_of(const Trace& trace, const std::vector<std::uint32_t>& events) {
  std::array<CopyUse, kCopyPaths> uses;
  std::array<std::vector<Interval>, kCopyPaths> intervals;
  for (const std::uint32_t i : events) {
    const GpuEvent& event = trace.gpu_events[i];
    if (event.kind == GpuEventKind::kernel) continue;
    const CopyPath path = copy_path(event.kind, trace.name(event));
    CopyUse& use = uses[static_cast<std::size_t>(path)];
    use.path = path;
    ++use.count;
    use.sum += length_of(event);
    intervals[static_cast<std::size_t>(path)].push_back(interval_of(event));
    if (event.bytes <= 0) continue;
    use.bytes += moved_bytes(path, event);
    use.bytes_time += length_of(event);
  }
  std::vector<CopyUse> used;
  for (std::size_t path = 0; path < uses.size(); ++path) {
    if (uses[path].count == 0) continue;
    uses[path].busy = covered_by(std::move(intervals[path]));
    used.push_back(uses[path]);
  }
  return used;
}

}  // namespace moeline
