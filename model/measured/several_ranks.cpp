#include "measured/several_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "measured/gatherings.hpp"

namespace moeline {
namespace {

void add_waits(const Communicator& group, const GroupKernel& kernel, const std::vector<std::int64_t>& ahead_ns,
               const std::vector<Gathering>& gatherings, SeveralRanks& result) {
  const auto others = static_cast<std::int64_t>(group.members.size() - 1);
  for (std::size_t k = 0; k < gatherings.size(); ++k) {
    const Gathering& g = gatherings[k];
    if (g.last_ns == g.first_ns) continue;  // nobody is last
    const std::size_t last = group.members[g.last];
    ++result.ranks[last].last;
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      const std::size_t rank = group.members[m];
      const Time wait = time_of(g.last_ns - (kernel.visits[m][k].arrives_ns - ahead_ns[m]));
      result.waits[rank][last] += wait;
      result.ranks[rank].waited += wait;
      result.ranks[last].kept_waiting += wait / others;
    }
  }
}

// What the clocks and groups of several ranks say of each kernel.
class KernelJudge {
 public:
  KernelJudge(const std::vector<RankTrace>& traces, const std::vector<RankClock>& clocks, SeveralRanks& result)
      : traces_(traces), clocks_(clocks), result_(result) {}

  void judge(const Communicator& group) {
    const std::vector<std::uint32_t> ranks = ranks_of(group);
    const bool one_clock = has_one_clock(group);
    for (const GroupKernel& kernel : group.kernels) {
      if (!one_clock) {
        separate(group, kernel, "cannot be told: the clocks of its ranks are not known against each other");
        continue;
      }
      judge(group, kernel, ahead_of(group));
    }
  }

 private:
  [[nodiscard]] std::vector<std::uint32_t> ranks_of(const Communicator& group) const {
    std::vector<std::uint32_t> ranks;
    for (const std::size_t member : group.members) ranks.push_back(rank_of(traces_[member]));
    return ranks;
  }

  [[nodiscard]] bool has_one_clock(const Communicator& group) const {
    return std::all_of(group.members.begin(), group.members.end(), [&](std::size_t member) {
      return clocks_[member].reference == clocks_[group.members.front()].reference;
    });
  }

  [[nodiscard]] std::vector<std::int64_t> ahead_of(const Communicator& group) const {
    std::vector<std::int64_t> ahead;
    for (const std::size_t member : group.members) ahead.push_back(clocks_[member].ahead_ns);
    return ahead;
  }

  void separate(const Communicator& group, const GroupKernel& kernel, std::string why) {
    result_.separate.push_back({kernel.kernel, std::move(why), group.name, ranks_of(group)});
  }

  void judge(const Communicator& group, const GroupKernel& kernel, const std::vector<std::int64_t>& ahead_ns) {
    const std::vector<Gathering> gatherings = gatherings_of(kernel, ahead_ns);
    const Time spread = time_of(quantile_of(gatherings, 0.5, end_spread_of));
    if (!end_together(gatherings)) {
      const bool is_guessed = !group.is_stated && leave_together(kernel.kind);
      return separate(
          group, kernel,
          fmt::format("{}ranks leave it {:.0f} us apart",
                      is_guessed ? "cannot be told: its groups are not stated, and as one, " : "", to_us(spread)));
    }
    result_.joint.push_back({.kernel = kernel.kernel,
                             .group = group.name,
                             .is_stated = group.is_stated,
                             .ranks = ranks_of(group),
                             .group_size = group.size,
                             .count = gatherings.size(),
                             .median_skew = time_of(quantile_of(gatherings, 0.5, skew_of)),
                             .p95_skew = time_of(quantile_of(gatherings, 0.95, skew_of)),
                             .end_spread = spread});
    result_.met += gatherings.size();
    for (const std::size_t member : group.members) result_.ranks[member].met += gatherings.size();
    add_waits(group, kernel, ahead_ns, gatherings, result_);
  }

  const std::vector<RankTrace>& traces_;
  const std::vector<RankClock>& clocks_;
  SeveralRanks& result_;
};

Breakdown breakdown_of(const RankTrace& rank) {
  BusyTimes busy;
  for (std::size_t i = 0; i < rank.trace.gpu_events.size(); ++i) {
    busy.add(interval_of(rank.trace.gpu_events[i]), work_of(rank.classes[i]));
  }
  busy.unite_all();
  if (busy.any.empty()) return {};
  return busy.breakdown(busy.any.back().end - busy.any.front().start);
}

void sort_by_rank(std::vector<RankTrace>& traces) {
  std::stable_sort(traces.begin(), traces.end(),
                   [](const RankTrace& a, const RankTrace& b) { return rank_of(a) < rank_of(b); });
  for (std::size_t i = 1; i < traces.size(); ++i) {
    if (rank_of(traces[i]) != rank_of(traces[i - 1])) continue;
    throw SpecError(traces[i].file, 0, fmt::format("is of rank {}, as {} is", rank_of(traces[i]), traces[i - 1].file));
  }
}

std::string words_of(const RankClock& clock, const std::vector<RankTrace>& traces) {
  const auto rank = [&](std::size_t position) { return rank_of(traces[position]); };
  const std::string reference =
      clock.reference == 0
          ? ""
          : fmt::format("; {:.1f} us ahead of rank {}", to_us(time_of(clock.ahead_ns)), rank(clock.reference));
  switch (clock.source) {
    case ClockSource::reference:
      return "the others' clocks count from it";
    case ClockSource::one_file:
      return fmt::format("in one file with rank {}{}", rank(clock.through), reference);
    case ClockSource::ends:
      return fmt::format("{} end{} of {} with rank {}{}", clock.ends, clock.ends == 1 ? "" : "s", clock.kernel,
                         rank(clock.through), reference);
    case ClockSource::assumed:
      return "assumed: both traces count from 0";
    case ClockSource::unknown:
      return "cannot be told: it leaves nothing together with those before";
  }
  return "";
}

RankOfSeveral rank_of_several(std::size_t position, const std::vector<RankTrace>& traces, const RankClock& clock) {
  return {.file = traces[position].file,
          .rank = rank_of(traces[position]),
          .times = breakdown_of(traces[position]),
          .clock_offset = clock.reference == 0 ? std::optional(time_of(clock.ahead_ns)) : std::nullopt,
          .clock_residue = time_of(clock.residue_ns),
          .clock_known_by = words_of(clock, traces)};
}

}  // namespace

SeveralRanks analyze_several(std::vector<RankTrace> traces) {
  sort_by_rank(traces);
  SeveralRanks result;
  result.waits.assign(traces.size(), std::vector<Time>(traces.size()));
  Communicators found = communicators_of(traces);
  if (found.groups.empty()) {
    throw SpecError(traces.front().file, 0, "shares no barrier or collective with the other traces");
  }
  const std::vector<RankClock> clocks = clocks_of(traces, found);
  for (std::size_t i = 0; i < traces.size(); ++i) result.ranks.push_back(rank_of_several(i, traces, clocks[i]));
  result.separate = std::move(found.others);
  KernelJudge judge(traces, clocks, result);
  for (const Communicator& group : found.groups) judge.judge(group);
  std::stable_sort(result.joint.begin(), result.joint.end(), [](const JointKernel& a, const JointKernel& b) {
    return a.median_skew * static_cast<std::int64_t>(a.count) > b.median_skew * static_cast<std::int64_t>(b.count);
  });
  return result;
}

}  // namespace moeline
