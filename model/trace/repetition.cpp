#include "trace/repetition.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace moeline {
namespace {

using Sequence = std::vector<std::uint32_t>;
using Places = std::vector<std::size_t>;

constexpr std::size_t kFewest = 3;      // repetitions
constexpr std::size_t kShortest = 4;    // elements: shorter ones are loops inside a layer
constexpr std::size_t kCandidates = 4;  // of those that occur equally often
constexpr std::size_t kAsked = 256;     // candidates in all; each costs a pass over the sequence

// Where each kind of element stands, those with the most places first; of equally many, the first to appear.
std::vector<Places> candidates(const Sequence& sequence) {
  std::map<std::uint32_t, Places> places;
  for (std::size_t i = 0; i < sequence.size(); ++i) places[sequence[i]].push_back(i);
  std::vector<Places> found;
  for (auto& [kind, at] : places) {
    const bool sparse = at.size() >= kFewest && at.size() * kShortest <= sequence.size();
    if (sparse) found.push_back(std::move(at));
  }
  std::sort(found.begin(), found.end(), [](const Places& a, const Places& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  return found;
}

// Nine tenths of the elements of [a, b) are those of [b, c).
bool alike(const Sequence& sequence, std::size_t a, std::size_t b, std::size_t c) {
  std::unordered_map<std::uint32_t, std::size_t> count;
  for (std::size_t i = a; i < b; ++i) ++count[sequence[i]];
  std::size_t same = 0;
  for (std::size_t i = b; i < c; ++i) {
    const auto left = count.find(sequence[i]);
    if (left == count.end() || left->second == 0) continue;
    --left->second;
    ++same;
  }
  return 10 * same >= 9 * std::max(b - a, c - b);
}

bool repeats(const Sequence& sequence, const Places& cuts) {
  const std::size_t pairs = cuts.size() - 2;
  std::size_t unlike = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    const bool long_enough = cuts[i + 1] - cuts[i] >= kShortest && cuts[i + 2] - cuts[i + 1] >= kShortest;
    if (!long_enough || !alike(sequence, cuts[i], cuts[i + 1], cuts[i + 2])) ++unlike;
    if (10 * unlike > pairs) return false;
  }
  return true;
}

// How many elements in front of each cut are the same in most repetitions, as far as the sequence goes back.
std::size_t same_in_front(const Sequence& sequence, const Places& cuts) {
  std::size_t most = cuts[0];
  for (std::size_t i = 1; i < cuts.size(); ++i) most = std::min(most, cuts[i] - cuts[i - 1] - 1);
  for (std::size_t back = 1; back <= most; ++back) {
    const auto same = std::count_if(cuts.begin(), cuts.end(),
                                    [&](std::size_t cut) { return sequence[cut - back] == sequence[cuts[0] - back]; });
    if (2 * static_cast<std::size_t>(same) <= cuts.size()) return back - 1;
  }
  return most;
}

// The last repetition is as long as the one before it, or ends with the sequence; what is much shorter is none.
void end_last(Places& starts, std::size_t size) {
  const std::size_t length = starts.back() - starts[starts.size() - 2];
  const std::size_t left = size - starts.back();
  if (10 * left >= 9 * length) starts.push_back(starts.back() + std::min(left, length));
}

}  // namespace

std::vector<std::size_t> repetitions(const Sequence& sequence) {
  std::size_t of_this_size = 0;
  std::size_t asked = 0;
  std::size_t size = 0;
  for (Places& cuts : candidates(sequence)) {
    of_this_size = cuts.size() == size ? of_this_size + 1 : 1;
    size = cuts.size();
    if (of_this_size > kCandidates) continue;
    if (++asked > kAsked) break;
    if (!repeats(sequence, cuts)) continue;
    const std::size_t front = same_in_front(sequence, cuts);
    for (std::size_t& cut : cuts) cut -= front;
    end_last(cuts, sequence.size());
    if (cuts.size() > kFewest) return std::move(cuts);
  }
  return {};
}

}  // namespace moeline
