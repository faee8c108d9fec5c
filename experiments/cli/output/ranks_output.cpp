#include "experiments/cli/output/analysis_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
namespace {

constexpr std::size_t kMostPairs = 10;
constexpr double kUsPerMs = 1e3;

std::string ms_text(Time time) { return fmt::format("{:.3f}", to_us(time) / kUsPerMs); }

// "0-3, 8"
std::string ranges_of(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
    next = first + 1;
    while (next < ranks.size() && ranks[next] == ranks[next - 1] + 1) ++next;
    text += text.empty() ? "" : ", ";
    text += next - first == 1 ? std::to_string(ranks[first]) : fmt::format("{}-{}", ranks[first], ranks[next - 1]);
  }
  return text;
}

std::string ranks_and_size(const JointKernel& kernel) {
  const std::string ranks = ranges_of(kernel.ranks);
  return kernel.ranks.size() == kernel.group_size ? ranks : fmt::format("{} of {}", ranks, kernel.group_size);
}

std::string group_or_none(const std::string& group, bool is_stated) {
  if (!is_stated) return group.empty() ? "not stated" : group + " (not stated which)";
  return group;
}

std::string percent_last(const RankOfSeveral& rank) {
  if (rank.met == 0) return "-";
  return fmt::format("{:.0f} %", 100.0 * static_cast<double>(rank.last) / static_cast<double>(rank.met));
}

std::string clock_text(const RankOfSeveral& rank) {
  return rank.clock_offset ? fmt::format("{:.1f}", to_us(*rank.clock_offset)) : "?";
}

std::string ranks_table(const SeveralRanks& all) {
  Fields<RankOfSeveral> fields;
  const auto ms = [&](const char* heading, auto time) {
    fields.column(heading, [=](auto& r) { return ms_text(time(r)); }, {.align = 'r'});
  };
  fields.column("rank", &RankOfSeveral::rank);
  ms("span ms", [](auto& r) { return r.times.span; });
  ms("compute", [](auto& r) { return r.times.compute; });
  ms("comm", [](auto& r) { return r.times.communication; });
  ms("exposed", [](auto& r) { return r.times.exposed; });
  ms("waits", [](auto& r) { return r.waited; });
  ms("keeps waiting", [](auto& r) { return r.kept_waiting; });
  fields.column("last", percent_last, {.align = 'r'});
  fields.column("clock us", clock_text, {.align = 'r'});
  fields.column("+-", &RankOfSeveral::clock_residue, {.format = "{:.1f}"});
  fields.column("trace", &RankOfSeveral::file);
  return fields.table(all.ranks).text();
}

struct KnownClocks {
  std::vector<std::uint32_t> ranks;
  std::string by;
};

// Ranks whose clocks are known by the same, together.
std::string clocks_table(const SeveralRanks& all) {
  std::vector<KnownClocks> clocks;
  for (const RankOfSeveral& rank : all.ranks) {
    const auto known = std::find_if(clocks.begin(), clocks.end(),
                                    [&](const KnownClocks& other) { return other.by == rank.clock_known_by; });
    if (known != clocks.end()) {
      known->ranks.push_back(rank.rank);
    } else {
      clocks.push_back({{rank.rank}, rank.clock_known_by});
    }
  }
  return Fields<KnownClocks>()
      .column("clock of", [](auto& c) { return ranges_of(c.ranks); })
      .column("known by", &KnownClocks::by)
      .table(clocks)
      .text();
}

std::vector<double> numbers_of(const std::vector<std::uint32_t>& ranks) { return {ranks.begin(), ranks.end()}; }

Fields<JointKernel> joint_fields() {
  const auto us = [](const char* heading) { return As{.heading = heading, .format = "{:.1f}"}; };
  return Fields<JointKernel>()
      .add("kernel", "its short name", &JointKernel::kernel, {.heading = "together"})
      .add("group", "name of the group of ranks; absent: the traces state none",
           [](auto& k) { return if_any(k.group); })
      .add("group_stated", "whether the traces state who is in it; else the ranks whose kernels agree",
           &JointKernel::is_stated)
      .add("group_size", "ranks of the group", &JointKernel::group_size, {.least = 2})
      .add("ranks", "those of the group whose traces are here", [](auto& k) { return numbers_of(k.ranks); },
           {.decimals = 0})
      .column("group", [](auto& k) { return group_or_none(k.group, k.is_stated); })
      .column("ranks", ranks_and_size)
      .add("count", "times on each rank", &JointKernel::count, {.least = 1, .heading = "times"})
      .add("skew_us", "us from the first arrival to the last, median", &JointKernel::median_skew, us("skew us"))
      .add("p95_skew_us", "us, 95 % quantile of the same", &JointKernel::p95_skew, us("95 %"))
      .add("ends_apart_us", "us from the first end to the last, median, clocks being set", &JointKernel::end_spread,
           us("ends apart"));
}

struct Pair {
  std::uint32_t waits = 0, last = 0;  // ranks
  Time time{};
};

std::vector<Pair> pairs_of(const SeveralRanks& all) {
  std::vector<Pair> pairs;
  for (std::size_t waits = 0; waits < all.ranks.size(); ++waits) {
    for (std::size_t last = 0; last < all.ranks.size(); ++last) {
      if (all.waits[waits][last] > Time::zero())
        pairs.push_back({all.ranks[waits].rank, all.ranks[last].rank, all.waits[waits][last]});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.time > b.time; });
  return pairs;
}

Fields<Pair> pair_fields() {
  return Fields<Pair>()
      .add("rank", "the rank that waits", &Pair::waits, {.heading = "rank"})
      .add("for_rank", "the rank that came last", &Pair::last, {.heading = "waits for"})
      .add("us", "us in all", &Pair::time)
      .column("ms", [](auto& p) { return ms_text(p.time); }, {.align = 'r'});
}

std::string pairs_table(const SeveralRanks& all) {
  std::vector<Pair> pairs = pairs_of(all);
  if (pairs.empty()) return "no rank waits for another\n";
  const std::size_t count = pairs.size();
  pairs.resize(std::min(count, kMostPairs));
  const std::string text = pair_fields().table(pairs).text();
  return count <= kMostPairs ? text : text + fmt::format("... and {} more pairs\n", count - kMostPairs);
}

// Groups for which the same is true of a kernel, on one line.
struct LeftOut {
  const SeparateKernel* first = nullptr;
  std::size_t groups = 0;
};

std::string groups_text(const LeftOut& left) {
  if (left.first->group.empty()) return "";
  const std::string more = left.groups > 1 ? fmt::format(" and {} more", left.groups - 1) : "";
  return fmt::format(" ({}{})", left.first->group, more);
}

std::string left_out(const SeveralRanks& all) {
  std::vector<LeftOut> lines;
  for (const SeparateKernel& each : all.separate) {
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const LeftOut& line) {
      return line.first->kernel == each.kernel && line.first->why == each.why;
    });
    if (same != lines.end()) {
      ++same->groups;
    } else {
      lines.push_back({&each, 1});
    }
  }
  std::string text;
  for (const LeftOut& line : lines) {
    text += fmt::format("not together: {}{}: {}\n", line.first->kernel, groups_text(line), line.first->why);
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string to_table(const SeveralRanks& ranks) {
  return fmt::format("{} ranks\n\n{}\n{}\n{}\n{}{}", ranks.ranks.size(), ranks_table(ranks), clocks_table(ranks),
                     joint_fields().table(ranks.joint).text(), pairs_table(ranks), left_out(ranks));
}

Fields<SeveralRanks> several_ranks_fields() {
  const auto rank =
      Fields<RankOfSeveral>()
          .add("rank", "rank", &RankOfSeveral::rank)
          .add("trace", "file", &RankOfSeveral::file)
          .add("span_us", "us from first start to last end", [](auto& r) { return r.times.span; })
          .add("compute_us", "us, union of kernels that compute", [](auto& r) { return r.times.compute; })
          .add("comm_us", "us, union of kernels that communicate", [](auto& r) { return r.times.communication; })
          .add("exposed_us", "us of communication beside which nothing computes",
               [](auto& r) { return r.times.exposed; })
          .add("waited_us", "us from its arrival at what ranks do together to that of the last of them",
               &RankOfSeveral::waited)
          .add("kept_waiting_us", "us that the others waited for it, on average over them, where it came last",
               &RankOfSeveral::kept_waiting)
          .add("last", "times that it came last", &RankOfSeveral::last)
          .add("clock_offset_us", "us by which its clock is ahead of the first rank's; null: cannot be told",
               [](auto& r) { return or_null(r.clock_offset); }, {.least = kAny})
          .add("clock_residue_us", "us by which ends then still scatter, in 95 % of cases",
               &RankOfSeveral::clock_residue)
          .add("clock_known_by", "in words", &RankOfSeveral::clock_known_by)
          .add("met", "times that it met others", &RankOfSeveral::met);
  const auto separate = Fields<SeparateKernel>()
                            .add("kernel", "its short name", &SeparateKernel::kernel)
                            .add("group", "name of the group of ranks; absent: the traces state none",
                                 [](auto& k) { return if_any(k.group); })
                            .add("ranks", "that run it", [](auto& k) { return numbers_of(k.ranks); }, {.decimals = 0})
                            .add("why", "in words", &SeparateKernel::why);
  return output_fields<SeveralRanks>()
      .list("ranks", "by rank", &SeveralRanks::ranks, rank)
      .list("together", "kernels of communication that the ranks of a group do together and leave at the same time",
            &SeveralRanks::joint, joint_fields())
      .list("not_together", "other kernels of communication", &SeveralRanks::separate, separate)
      .list("waits", "pairs of ranks, the longest wait first", pairs_of, pair_fields());
}

std::string to_json(const SeveralRanks& all) { return several_ranks_fields().json(all); }

}  // namespace moeline
