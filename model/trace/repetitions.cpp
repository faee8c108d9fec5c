#include "trace/repetitions.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace moeline {
namespace {

using Sequence = std::vector<std::uint32_t>;
using Places = std::vector<std::size_t>;
using Repetitions = std::vector<Repetition>;

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

// How much of the longer of two repetitions is in the other one.
struct Likeness {
  std::size_t shared = 0, longer = 0;
  [[nodiscard]] bool same() const { return 10 * shared >= 9 * longer; }
  [[nodiscard]] bool akin() const { return 2 * shared > longer; }
};

// What the cuts at one element give.
struct Found {
  Repetitions all;
  std::size_t score = 0;  // those that are like the one before them
};

class Finder {
 public:
  Finder(const Sequence& sequence, const std::set<std::uint32_t>& attention) : sequence_(sequence) {
    attention_before_.push_back(0);
    for (const std::uint32_t element : sequence) {
      attention_before_.push_back(attention_before_.back() + (attention.contains(element) ? 1 : 0));
    }
  }

  [[nodiscard]] Repetitions find() const {
    Found best;
    std::size_t of_this_size = 0;
    std::size_t asked = 0;
    std::size_t size = 0;
    for (const Places& cuts : candidates(sequence_)) {
      if (cuts.size() <= best.score) break;
      of_this_size = cuts.size() == size ? of_this_size + 1 : 1;
      size = cuts.size();
      if (of_this_size > kCandidates) continue;
      if (++asked > kAsked) break;
      Found found = cut_at(cuts);
      if (found.score > best.score) best = std::move(found);
    }
    return best.all;
  }

 private:
  [[nodiscard]] bool has_attention(const Repetition& r) const {
    return attention_before_[r.end] > attention_before_[r.begin];
  }

  [[nodiscard]] Likeness likeness(const Repetition& a, const Repetition& b) const {
    std::unordered_map<std::uint32_t, std::size_t> count;
    for (std::size_t i = a.begin; i < a.end; ++i) ++count[sequence_[i]];
    std::size_t shared = 0;
    for (std::size_t i = b.begin; i < b.end; ++i) {
      const auto left = count.find(sequence_[i]);
      if (left == count.end() || left->second == 0) continue;
      --left->second;
      ++shared;
    }
    return {shared, std::max(a.length(), b.length())};
  }

  [[nodiscard]] Found cut_at(const Places& cuts) const {
    Found found;
    const std::size_t front = same_in_front(sequence_, cuts);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) found.all.push_back({cuts[i] - front, cuts[i + 1] - front});
    if (const auto last = last_one(found.all)) found.all.push_back(*last);
    if (!without_ends(found.all) || found.all.size() < kFewest) return {};
    found.score = score_of(found.all);
    if (found.score > 0) cut_short(found.all);
    return found;
  }

  // As long as the longest of those before it that what is left begins with, else as the one just before it; shorter by
  // a tenth where the sequence ends. What is much shorter is none.
  [[nodiscard]] std::optional<Repetition> last_one(const Repetitions& before) const {
    constexpr std::size_t kKinds = 8;  // repetitions in which each kind of layer has been met
    const std::size_t begin = before.back().end;
    const std::size_t left = sequence_.size() - begin;
    const auto fits = [&](std::size_t length) { return 10 * left >= 9 * length; };
    const auto of_length = [&](std::size_t length) { return Repetition{begin, begin + std::min(left, length)}; };
    std::optional<Repetition> longest;
    for (std::size_t back = 1; back <= std::min(kKinds, before.size()); ++back) {
      const Repetition& earlier = before[before.size() - back];
      const Repetition last = of_length(earlier.length());
      const bool longer = !longest || last.length() > longest->length();
      if (fits(earlier.length()) && longer && likeness(earlier, last).same()) longest = last;
    }
    if (longest) return longest;
    return fits(before.back().length()) ? std::optional(of_length(before.back().length())) : std::nullopt;
  }

  // Takes off prologue and epilogue; false where they would be many.
  [[nodiscard]] bool without_ends(Repetitions& all) const {
    const auto with = std::count_if(all.begin(), all.end(), [&](const Repetition& r) { return has_attention(r); });
    const bool known = 2 * static_cast<std::size_t>(with) > all.size();
    const auto belongs = [&](const Repetition& end, const Repetition& neighbour) {
      return known ? has_attention(end) : likeness(end, neighbour).akin();
    };
    constexpr std::size_t kMost = 8;  // in a sequence without repetitions each would cost a look
    std::size_t taken = 0;
    for (; all.size() > kFewest && !belongs(all[0], all[1]); all.erase(all.begin())) {
      if (++taken > kMost) return false;
    }
    for (; all.size() > kFewest && !belongs(all.back(), all[all.size() - 2]); all.pop_back()) {
      if (++taken > kMost) return false;
    }
    return true;
  }

  // Repetitions that are like the one before them, and the first; 0: they are no layers.
  [[nodiscard]] std::size_t score_of(const Repetitions& all) const {
    const std::size_t pairs = all.size() - 1;
    const auto few = [&](std::size_t exceptions) { return 10 * exceptions <= pairs; };
    std::size_t unlike = 0;    // pairs that are not even akin
    std::size_t not_same = 0;  // pairs
    for (std::size_t i = 0; i < pairs; ++i) {
      const bool long_enough = all[i].length() >= kShortest && all[i + 1].length() >= kShortest;
      const Likeness like = long_enough ? likeness(all[i], all[i + 1]) : Likeness{0, 1};
      if (!like.same()) ++not_same;
      if (!like.akin()) ++unlike;
      if (!few(unlike) && unlike > 1) return 0;
    }
    if (few(not_same)) return all.size() - not_same;
    return are_of_several_kinds(all, unlike, not_same) ? all.size() - unlike : 0;
  }

  [[nodiscard]] bool are_of_several_kinds(const Repetitions& all, std::size_t unlike, std::size_t not_same) const {
    const std::size_t pairs = all.size() - 1;
    const auto with = static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const Repetition& r) { return has_attention(r); }));
    const bool each_has_attention = 10 * (all.size() - with) <= all.size();
    // One border between two kinds, as of dense layers before those with experts, is none too many.
    constexpr std::size_t kManyPairs = 4;
    const bool few_unlike = 10 * unlike <= pairs || (each_has_attention && unlike == 1 && pairs >= kManyPairs);
    const bool some_are_same = 4 * (pairs - not_same) >= pairs;
    return few_unlike && (each_has_attention || (2 * with < all.size() && some_are_same));
  }

  void cut_short(Repetitions& all) const {
    const std::size_t usual = usual_length(all);
    const auto pattern = std::find_if(all.begin(), all.end(), [&](const Repetition& r) { return r.length() == usual; });
    for (Repetition& r : all) {
      const Repetition begin{r.begin, r.begin + usual};
      if (2 * r.length() > 3 * usual && likeness(*pattern, begin).same()) r = begin;
    }
  }

  [[nodiscard]] static std::size_t usual_length(const Repetitions& all) {
    std::vector<std::size_t> lengths;
    for (const Repetition& r : all) lengths.push_back(r.length());
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    return *middle;
  }

  const Sequence& sequence_;
  std::vector<std::size_t> attention_before_;  // by position: how much attention stands in front of it
};

}  // namespace

std::vector<Repetition> repetitions(const Sequence& sequence, const std::set<std::uint32_t>& attention) {
  return Finder(sequence, attention).find();
}

}  // namespace moeline
