#include "experiments/cli/output/ranks_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.hpp"
#include "experiments/cli/output/json.hpp"

namespace moeline {
namespace {

constexpr std::size_t kMostPairs = 10;
constexpr double kUsPerMs = 1e3;

std::string ms_text(Time time) { return fmt::format("{:.3f}", to_us(time) / kUsPerMs); }

std::string ranks_table(const SeveralRanks& all) {
  TextTable table("rrrrrrrrrl");
  table.row({"rank", "span ms", "compute", "comm", "exposed", "waits", "keeps waiting", "last", "clock us", "trace"});
  for (const RankOfSeveral& each : all.ranks) {
    table.row({fmt::format("{}", each.rank), ms_text(each.times.span), ms_text(each.times.compute),
               ms_text(each.times.communication), ms_text(each.times.exposed), ms_text(each.waited),
               ms_text(each.kept_waiting),
               fmt::format("{:.0f} %", 100.0 * static_cast<double>(each.last) / static_cast<double>(all.met)),
               us_text(each.clock_offset), each.file});
  }
  return table.text();
}

std::string joint_table(const SeveralRanks& all) {
  TextTable table("lrrrr");
  table.row({"together", "times", "skew us", "95 %", "ends apart"});
  for (const JointKernel& each : all.joint) {
    table.row({each.kernel, fmt::format("{}", each.count), us_text(each.median_skew), us_text(each.p95_skew),
               us_text(each.end_spread)});
  }
  return table.text();
}

struct Pair {
  std::size_t waits = 0, last = 0;
  Time time{};
};

std::vector<Pair> pairs_of(const SeveralRanks& all) {
  std::vector<Pair> pairs;
  for (std::size_t waits = 0; waits < all.ranks.size(); ++waits) {
    for (std::size_t last = 0; last < all.ranks.size(); ++last) {
      if (all.waits[waits][last] > Time::zero()) pairs.push_back({waits, last, all.waits[waits][last]});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.time > b.time; });
  return pairs;
}

std::string pairs_table(const SeveralRanks& all) {
  const std::vector<Pair> pairs = pairs_of(all);
  TextTable table("rrr");
  table.row({"rank", "waits for", "ms"});
  for (std::size_t i = 0; i < std::min(pairs.size(), kMostPairs); ++i) {
    table.row({fmt::format("{}", all.ranks[pairs[i].waits].rank), fmt::format("{}", all.ranks[pairs[i].last].rank),
               ms_text(pairs[i].time)});
  }
  if (pairs.size() <= kMostPairs) return table.text();
  return table.text() + fmt::format("... and {} more pairs\n", pairs.size() - kMostPairs);
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
  return fmt::format("{} ranks\n\n{}\n{}\n{}{}", ranks.ranks.size(), ranks_table(ranks), joint_table(ranks),
                     pairs_table(ranks), left_out(ranks));
}

std::string to_json(const SeveralRanks& all) {
  Json json;
  json.open().add("schema_version", 1).open_list("ranks");
  for (const RankOfSeveral& each : all.ranks) {
    json.open().add("rank", each.rank).add("trace", each.file).add("span_us", to_us(each.times.span));
    json.add("compute_us", to_us(each.times.compute)).add("comm_us", to_us(each.times.communication));
    json.add("exposed_us", to_us(each.times.exposed)).add("waited_us", to_us(each.waited));
    json.add("kept_waiting_us", to_us(each.kept_waiting)).add("last", each.last);
    json.add("clock_offset_us", to_us(each.clock_offset)).close();
  }
  json.close_list().open_list("together");
  for (const JointKernel& each : all.joint) {
    json.open().add("kernel", each.kernel).add("count", each.count).add("skew_us", to_us(each.median_skew));
    json.add("p95_skew_us", to_us(each.p95_skew)).add("ends_apart_us", to_us(each.end_spread)).close();
  }
  json.close_list().open_list("not_together");
  for (const SeparateKernel& each : all.separate) json.open().add("kernel", each.kernel).add("why", each.why).close();
  json.close_list().open_list("waits");
  for (const Pair& pair : pairs_of(all)) {
    json.open().add("rank", all.ranks[pair.waits].rank).add("for_rank", all.ranks[pair.last].rank);
    json.add("us", to_us(pair.time)).close();
  }
  return json.close_list().close().text();
}

}  // namespace moeline
