#include "measured/repetition.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace moeline {
namespace {

constexpr std::size_t kFewest = 3;    // repetitions
constexpr std::size_t kShortest = 4;  // elements: shorter ones are loops inside a layer
constexpr std::size_t kCandidates = 64;

// A period shows as the distance between neighbours of equal kind; the rarest kinds show the longest periods.
std::set<std::size_t> candidate_periods(const std::vector<std::uint32_t>& sequence) {
  std::map<std::uint32_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < sequence.size(); ++i) places[sequence[i]].push_back(i);
  std::vector<const std::vector<std::size_t>*> rare;
  for (const auto& [kind, at] : places) {
    if (at.size() >= kFewest) rare.push_back(&at);
  }
  std::stable_sort(rare.begin(), rare.end(), [](const auto* a, const auto* b) { return a->size() < b->size(); });
  std::set<std::size_t> periods;
  for (const auto* at : rare) {
    for (std::size_t i = 1; i < std::min<std::size_t>(at->size(), kFewest + 1); ++i) {
      if (const std::size_t period = (*at)[i] - (*at)[i - 1]; period >= kShortest) periods.insert(period);
    }
    if (periods.size() >= kCandidates) break;
  }
  return periods;
}

bool repeats(const std::vector<std::uint32_t>& sequence, std::size_t period) {
  if (sequence.size() < kFewest * period) return false;
  std::size_t same = 0;
  const std::size_t compared = sequence.size() - period;
  for (std::size_t i = 0; i < compared; ++i) same += sequence[i] == sequence[i + period] ? 1 : 0;
  return 10 * same >= 9 * compared;
}

}  // namespace

std::vector<std::size_t> repetitions(const std::vector<std::uint32_t>& sequence) {
  for (const std::size_t period : candidate_periods(sequence)) {
    if (!repeats(sequence, period)) continue;
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i + period <= sequence.size(); i += period) starts.push_back(i);
    return starts;
  }
  return {};
}

}  // namespace moeline
