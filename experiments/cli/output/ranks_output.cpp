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
  fields.column("last", [&](auto& r) { return 100.0 * static_cast<double>(r.last) / static_cast<double>(all.met); },
                {.format = "{:.0f} %"});
  fields.column("clock us", &RankOfSeveral::clock_offset, {.format = "{:.1f}"});
  fields.column("trace", &RankOfSeveral::file);
  return fields.table(all.ranks).text();
}

Fields<JointKernel> joint_fields() {
  const auto us = [](const char* heading) { return As{.heading = heading, .format = "{:.1f}"}; };
  return Fields<JointKernel>()
      .add("kernel", "its short name", &JointKernel::kernel, {.heading = "together"})
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
  const std::size_t count = pairs.size();
  pairs.resize(std::min(count, kMostPairs));
  const std::string text = pair_fields().table(pairs).text();
  return count <= kMostPairs ? text : text + fmt::format("... and {} more pairs\n", count - kMostPairs);
}

std::string left_out(const SeveralRanks& all) {
  std::string text;
  for (const SeparateKernel& each : all.separate) {
    text += fmt::format("not together: {}: {}\n", each.kernel, each.why);
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string to_table(const SeveralRanks& ranks) {
  return fmt::format("{} ranks\n\n{}\n{}\n{}{}", ranks.ranks.size(), ranks_table(ranks),
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
          .add("clock_offset_us", "us by which its clock is ahead of the first rank's", &RankOfSeveral::clock_offset,
               {.least = kAny});
  const auto separate = Fields<SeparateKernel>()
                            .add("kernel", "its short name", &SeparateKernel::kernel)
                            .add("why", "in words", &SeparateKernel::why);
  return output_fields<SeveralRanks>()
      .list("ranks", "by rank", &SeveralRanks::ranks, rank)
      .list("together", "kernels of communication that all ranks have equally often and leave at the same time",
            &SeveralRanks::joint, joint_fields())
      .list("not_together", "other kernels of communication", &SeveralRanks::separate, separate)
      .list("waits", "pairs of ranks, the longest wait first", pairs_of, pair_fields());
}

std::string to_json(const SeveralRanks& all) { return several_ranks_fields().json(all); }

}  // namespace moeline
