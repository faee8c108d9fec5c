#include "measured/clocks.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "measured/gatherings.hpp"
#include "measured/quantile.hpp"

namespace moeline {
namespace {

// What one kernel says of two clocks.
struct ClockDifference {
  std::size_t from = 0, to = 0;  // ranks
  std::int64_t ahead_ns = 0;     // of the clock of `to`
  std::int64_t residue_ns = 0;
  std::int64_t length_ns = 0;  // of the kernel, median
  std::size_t ends = 0;
  bool is_stated = true;  // its group
  bool is_one_file = false;
  std::string kernel{};
};

ClockDifference difference_of(const GroupKernel& kernel, std::size_t member) {
  std::vector<std::int64_t> differences, lengths;
  for (std::size_t k = 0; k < kernel.visits[0].size(); ++k) {
    const Visit& one = kernel.visits[0][k];
    const Visit& other = kernel.visits[member][k];
    differences.push_back(other.leaves_ns - one.leaves_ns);
    lengths.push_back(std::max(one.leaves_ns - one.arrives_ns, other.leaves_ns - other.arrives_ns));
  }
  ClockDifference difference;
  difference.ends = differences.size();
  difference.ahead_ns = quantile(differences, 0.5);
  difference.length_ns = quantile(std::move(lengths), 0.5);
  constexpr double kMost = 0.95;
  for (std::int64_t& each : differences) each = std::abs(each - difference.ahead_ns);
  difference.residue_ns = quantile(std::move(differences), kMost);
  difference.kernel = kernel.kernel;
  return difference;
}

// Of the first member and each other one, so that the others differ by what they differ from it.
std::vector<ClockDifference> differences_by(const Communicator& group, const GroupKernel& kernel) {
  std::vector<ClockDifference> all;
  for (std::size_t member = 1; member < group.members.size(); ++member) {
    ClockDifference difference = difference_of(kernel, member);
    if (2 * difference.residue_ns > difference.length_ns) continue;
    difference.from = group.members[0];
    difference.to = group.members[member];
    difference.is_stated = group.is_stated;
    all.push_back(std::move(difference));
  }
  return all;
}

// By one clock they would be several groups of which each leaves the kernel together.
bool may_be_several_groups(const std::vector<ClockDifference>& differences) {
  std::vector<std::int64_t> ahead = {0};  // of the first member, and the others
  std::int64_t residue = 0;
  for (const ClockDifference& each : differences) {
    ahead.push_back(each.ahead_ns);
    residue = std::max(residue, each.residue_ns);
  }
  std::sort(ahead.begin(), ahead.end());
  std::size_t groups = 0;
  for (std::size_t first = 0, next = 0; first < ahead.size(); first = next, ++groups) {
    next = first + 1;
    while (next < ahead.size() && ahead[next] - ahead[next - 1] <= residue) ++next;
    if (next - first == 1) return false;
  }
  return groups > 1;
}

bool all_count_from_zero(const std::vector<RankTrace>& traces) {
  return std::all_of(traces.begin(), traces.end(), [](const RankTrace& t) { return t.trace.counts_from_zero; });
}

std::vector<ClockDifference> differences_of(const std::vector<RankTrace>& traces, const Communicators& found) {
  std::vector<ClockDifference> all;
  for (std::size_t rank = 1; rank < traces.size(); ++rank) {
    const auto same = std::find_if(traces.begin(), traces.end(),
                                   [&](const RankTrace& other) { return other.file == traces[rank].file; });
    const auto first = static_cast<std::size_t>(same - traces.begin());
    if (first < rank) all.push_back({.from = first, .to = rank, .is_one_file = true});
  }
  const bool one_clock = all_count_from_zero(traces);
  for (const Communicator& group : found.groups) {
    for (const GroupKernel& kernel : group.kernels) {
      if (!leave_together(kernel.kind)) continue;
      std::vector<ClockDifference> own = differences_by(group, kernel);
      if (!group.is_stated && one_clock && may_be_several_groups(own)) continue;
      all.insert(all.end(), own.begin(), own.end());
    }
  }
  return all;
}

bool is_surer(const ClockDifference& a, const ClockDifference& b) {
  constexpr std::size_t kEnough = 10;  // fewer hardly scatter
  const auto doubts = [](const ClockDifference& d) {
    return std::tuple(!d.is_one_file, !d.is_stated, d.ends < kEnough, d.residue_ns);
  };
  return doubts(a) != doubts(b) ? doubts(a) < doubts(b) : a.ends > b.ends;
}

// Ranks whose clocks are known against each other, joined by what is surest first.
class ClockTree {
 public:
  explicit ClockTree(std::size_t ranks) : clocks_(ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) clocks_[rank].reference = rank;
  }

  void join(const ClockDifference& difference) {
    if (clocks_[difference.from].reference == clocks_[difference.to].reference) return;
    const bool turns = clocks_[difference.to].reference < clocks_[difference.from].reference;
    const std::size_t kept = turns ? difference.to : difference.from;
    const std::size_t moved = turns ? difference.from : difference.to;
    const std::int64_t ahead = turns ? -difference.ahead_ns : difference.ahead_ns;
    tree_.push_back({kept, moved, ahead, &difference});
    merge(clocks_[moved].reference, clocks_[kept].reference);
  }

  // Each counted from the reference, along the tree.
  [[nodiscard]] std::vector<RankClock> clocks() const {
    std::vector<RankClock> clocks = clocks_;
    std::vector<std::size_t> reached;
    for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
      if (clocks[rank].reference == rank) reached.push_back(rank);
    }
    for (std::size_t i = 0; i < reached.size(); ++i) follow(reached[i], clocks, reached);
    for (RankClock& clock : clocks) {
      if (std::abs(clock.ahead_ns) <= clock.residue_ns) clock.ahead_ns = 0;
    }
    return clocks;
  }

 private:
  struct Branch {
    std::size_t from = 0, to = 0;
    std::int64_t ahead_ns = 0;
    const ClockDifference* difference = nullptr;
  };

  void merge(std::size_t reference, std::size_t into) {
    for (RankClock& clock : clocks_) {
      if (clock.reference == reference) clock.reference = into;
    }
  }

  void follow(std::size_t rank, std::vector<RankClock>& clocks, std::vector<std::size_t>& reached) const {
    for (const Branch& branch : tree_) {
      if (branch.from != rank && branch.to != rank) continue;
      const bool back = branch.to == rank;
      const std::size_t next = back ? branch.from : branch.to;
      if (clocks[next].source != ClockSource::reference || clocks[next].reference == next) continue;
      const ClockDifference& difference = *branch.difference;
      RankClock& clock = clocks[next];
      clock.ahead_ns = clocks[rank].ahead_ns + (back ? -branch.ahead_ns : branch.ahead_ns);
      clock.residue_ns = clocks[rank].residue_ns + difference.residue_ns;
      clock.source = difference.is_one_file ? ClockSource::one_file : ClockSource::ends;
      clock.through = rank;
      clock.kernel = difference.kernel;
      clock.ends = difference.ends;
      reached.push_back(next);
    }
  }

  std::vector<RankClock> clocks_;
  std::vector<Branch> tree_;
};

// REQUIRES: the surest first.
std::vector<RankClock> clocks_by(const std::vector<ClockDifference>& differences, std::size_t ranks) {
  ClockTree tree(ranks);
  for (const ClockDifference& difference : differences) tree.join(difference);
  return tree.clocks();
}

bool contradicts(const ClockDifference& difference, const std::vector<RankClock>& clocks) {
  const std::int64_t set = clocks[difference.to].ahead_ns - clocks[difference.from].ahead_ns;
  return 2 * std::abs(difference.ahead_ns - set) > difference.length_ns;
}

// Groups that are not stated and contradict what is set: whether they or those that set it are none, nobody knows.
void drop_contradicted(const std::vector<RankClock>& clocks, std::vector<ClockDifference>& differences) {
  std::set<std::size_t> doubtful;  // ranks
  for (const ClockDifference& each : differences) {
    if (!each.is_stated && contradicts(each, clocks)) doubtful.insert({each.from, each.to});
  }
  std::erase_if(differences, [&](const ClockDifference& each) {
    return !each.is_stated && doubtful.contains(each.from) && doubtful.contains(each.to);
  });
}

// Clocks that are known to differ are not one.
void assume_one_clock(const std::vector<RankTrace>& traces, std::vector<RankClock>& clocks) {
  const bool differ =
      std::any_of(clocks.begin(), clocks.end(), [](const RankClock& clock) { return clock.ahead_ns != 0; });
  const bool is_one = !differ && all_count_from_zero(traces);
  for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
    if (rank > 0 && clocks[rank].reference == rank) {
      clocks[rank].source = is_one ? ClockSource::assumed : ClockSource::unknown;
    }
    if (is_one) clocks[rank].reference = 0;
  }
}

}  // namespace

std::vector<RankClock> clocks_of(const std::vector<RankTrace>& traces, const Communicators& found) {
  std::vector<ClockDifference> differences = differences_of(traces, found);
  std::stable_sort(differences.begin(), differences.end(), is_surer);
  drop_contradicted(clocks_by(differences, traces.size()), differences);
  std::vector<RankClock> clocks = clocks_by(differences, traces.size());
  assume_one_clock(traces, clocks);
  return clocks;
}

}  // namespace moeline
