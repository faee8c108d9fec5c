#include "experiments/memory/memory_over_time.hpp"

#include <algorithm>
#include <tuple>

namespace moeline {

void accumulate(std::vector<MemoryChange>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const MemoryChange& a, const MemoryChange& b) {
    return std::tuple(a.at, a.passes, a.total()) < std::tuple(b.at, b.passes, b.total());
  });
  for (std::size_t i = 1; i < changes.size(); ++i) {
    changes[i].activations += changes[i - 1].activations;
    changes[i].workspace += changes[i - 1].workspace;
    changes[i].optimizer += changes[i - 1].optimizer;
    changes[i].passes += changes[i - 1].passes;
  }
}

std::vector<MemoryChange> changes_of(const std::vector<SlotStay>& stays, std::vector<MemoryChange> changes) {
  for (const SlotStay& stay : stays) {
    const SlotMemory& m = stay.memory;
    const int begun = has_forward(stay.kind) ? 1 : 0, done = has_weight(stay.kind) ? -1 : 0;
    changes.push_back({.at = stay.start, .activations = m.activations, .workspace = m.workspace, .passes = begun});
    changes.push_back(
        {.at = stay.end, .activations = m.left - m.activations, .workspace = -m.workspace, .passes = done});
  }
  accumulate(changes);
  return changes;
}

std::vector<MemoryPeak> peaks_of(const std::vector<MemoryChange>& changes, const std::vector<SlotStay>& stays,
                                 double rest) {
  std::array<double, kMemoryPhases> most;
  most.fill(kNothingRuns);
  const auto note = [&](std::size_t phase, double bytes) { most[phase] = std::max(most[phase], bytes); };
  auto change = changes.begin();
  for (const SlotStay& stay : stays) {
    while (change != changes.end() && change->at < stay.start) ++change;
    for (auto during = change; during != changes.end() && during->at < stay.end; ++during) {
      const double beside = rest + during->total() - stay.memory.activations - stay.memory.workspace;
      for (std::size_t phase = 0; phase < kMemoryPhases; ++phase) {
        note(phase, beside + stay.memory.most[phase]);
      }
    }
  }
  for (; change != changes.end(); ++change) {
    if (stays.empty() || change->at >= stays.back().end) {
      note(static_cast<std::size_t>(MemoryPhase::optimizer), rest + change->total());
    }
  }
  std::vector<MemoryPeak> peaks;
  for (std::size_t phase = 0; phase < kMemoryPhases; ++phase) {
    if (most[phase] > kNothingRuns) peaks.push_back({static_cast<MemoryPhase>(phase), most[phase]});
  }
  std::stable_sort(peaks.begin(), peaks.end(),
                   [](const MemoryPeak& a, const MemoryPeak& b) { return a.bytes > b.bytes; });
  return peaks;
}

}  // namespace moeline
