#include "measured/several_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

// When a rank's clock shows that it reaches and leaves what ranks do together.
struct Visit {
  std::int64_t arrives_ns = 0, leaves_ns = 0;
};
using Visits = std::vector<Visit>;  // of one kernel on one rank, in order

std::map<std::string, Visits> visits_of(const RankTrace& rank) {
  std::map<std::string, Visits> visits;
  for (std::size_t i = 0; i < rank.trace.gpu_events.size(); ++i) {
    if (!is_communication(rank.classes[i])) continue;
    const GpuEvent& event = rank.trace.gpu_events[i];
    const std::int64_t zero = rank.trace.time_zero_ns;
    visits[short_kernel_name(rank.trace.name(event))].push_back({zero + event.start_ns, zero + event.end_ns});
  }
  return visits;
}

template <class Number>
Number quantile(std::vector<Number> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// Kernels that all ranks have equally often: by kernel, by rank.
using Common = std::map<std::string, std::vector<Visits>>;

Common common_of(const std::vector<RankTrace>& traces, std::vector<SeparateKernel>& others) {
  std::vector<std::map<std::string, Visits>> all;
  std::set<std::string> kernels;
  for (const RankTrace& trace : traces) {
    all.push_back(visits_of(trace));
    for (const auto& [kernel, visits] : all.back()) kernels.insert(kernel);
  }
  Common common;
  for (const std::string& kernel : kernels) {
    std::vector<Visits> by_rank;
    for (auto& visits : all) by_rank.push_back(visits[kernel]);
    const auto [least, most] = std::minmax_element(
        by_rank.begin(), by_rank.end(), [](const Visits& a, const Visits& b) { return a.size() < b.size(); });
    if (least->size() == most->size()) {
      common[kernel] = std::move(by_rank);
    } else {
      others.push_back({kernel, fmt::format("{} to {} of them on a rank", least->size(), most->size())});
    }
  }
  return common;
}

// Each rank's clock less the first one's.
std::vector<std::int64_t> clock_offsets(const Common& common, std::size_t ranks) {
  std::vector<std::int64_t> offsets(ranks, 0);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    std::vector<std::int64_t> differences;
    for (const auto& [kernel, visits] : common) {
      for (std::size_t k = 0; k < visits[0].size(); ++k) {
        differences.push_back(visits[rank][k].leaves_ns - visits[0][k].leaves_ns);
      }
    }
    if (!differences.empty()) offsets[rank] = quantile(std::move(differences), 0.5);
  }
  return offsets;
}

void set_clocks(Common& common, const std::vector<std::int64_t>& offsets) {
  for (auto& [kernel, by_rank] : common) {
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      for (Visit& visit : by_rank[rank]) {
        visit.arrives_ns -= offsets[rank];
        visit.leaves_ns -= offsets[rank];
      }
    }
  }
}

// The k-th time that ranks come together in a kernel.
struct Gathering {
  std::size_t last_rank = 0;
  std::int64_t first_ns = 0, last_ns = 0;         // arrivals
  std::int64_t end_spread_ns = 0, length_ns = 0;  // from the last arrival to the first end, the shortest stay
};

Gathering gathering_of(const std::vector<Visits>& by_rank, std::size_t k) {
  Gathering g{.first_ns = by_rank[0][k].arrives_ns, .last_ns = by_rank[0][k].arrives_ns};
  std::int64_t first_end = by_rank[0][k].leaves_ns, last_end = first_end;
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    const Visit& visit = by_rank[rank][k];
    if (visit.arrives_ns > g.last_ns) {
      g.last_ns = visit.arrives_ns;
      g.last_rank = rank;
    }
    g.first_ns = std::min(g.first_ns, visit.arrives_ns);
    first_end = std::min(first_end, visit.leaves_ns);
    last_end = std::max(last_end, visit.leaves_ns);
  }
  g.end_spread_ns = last_end - first_end;
  g.length_ns = last_end - g.first_ns;
  return g;
}

std::vector<Gathering> gatherings_of(const std::vector<Visits>& by_rank) {
  std::vector<Gathering> all;
  for (std::size_t k = 0; k < by_rank.front().size(); ++k) all.push_back(gathering_of(by_rank, k));
  return all;
}

template <class Value>
std::int64_t quantile_of(const std::vector<Gathering>& gatherings, double share, const Value& value) {
  std::vector<std::int64_t> values;
  for (const Gathering& each : gatherings) values.push_back(value(each));
  return quantile(std::move(values), share);
}

std::int64_t skew_of(const Gathering& g) { return g.last_ns - g.first_ns; }
std::int64_t spread_of(const Gathering& g) { return g.end_spread_ns; }
std::int64_t length_of_gathering(const Gathering& g) { return g.length_ns; }

bool leaves_together(const std::vector<Gathering>& gatherings) {
  return 2 * quantile_of(gatherings, 0.5, spread_of) <= quantile_of(gatherings, 0.5, length_of_gathering);
}

void add_waits(const std::vector<Visits>& by_rank, const std::vector<Gathering>& gatherings, SeveralRanks& result) {
  const auto others = static_cast<std::int64_t>(by_rank.size() - 1);
  for (std::size_t k = 0; k < gatherings.size(); ++k) {
    const Gathering& g = gatherings[k];
    if (g.last_ns == g.first_ns) continue;  // nobody is last
    RankOfSeveral& last = result.ranks[g.last_rank];
    ++last.last;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      const Time wait = time_of(g.last_ns - by_rank[rank][k].arrives_ns);
      result.waits[rank][g.last_rank] += wait;
      result.ranks[rank].waited += wait;
      last.kept_waiting += wait / others;
    }
  }
}

void add_kernel(const std::string& kernel, const std::vector<Visits>& by_rank, SeveralRanks& result) {
  const std::vector<Gathering> gatherings = gatherings_of(by_rank);
  if (!leaves_together(gatherings)) {
    const Time spread = time_of(quantile_of(gatherings, 0.5, spread_of));
    result.separate.push_back({kernel, fmt::format("ranks leave it {:.0f} us apart", to_us(spread))});
    return;
  }
  result.joint.push_back({.kernel = kernel,
                          .count = gatherings.size(),
                          .median_skew = time_of(quantile_of(gatherings, 0.5, skew_of)),
                          .p95_skew = time_of(quantile_of(gatherings, 0.95, skew_of)),
                          .end_spread = time_of(quantile_of(gatherings, 0.5, spread_of))});
  result.met += gatherings.size();
  add_waits(by_rank, gatherings, result);
}

Breakdown breakdown_of(const RankTrace& rank) {
  BusyTimes busy;
  for (std::size_t i = 0; i < rank.trace.gpu_events.size(); ++i) {
    busy.add(interval_of(rank.trace.gpu_events[i]), work_of(rank.classes[i]));
  }
  busy.unite_all();
  if (busy.any.empty()) return {};
  return busy.breakdown(busy.any.back().end - busy.any.front().start);
}

std::uint32_t rank_of(const RankTrace& trace) { return trace.trace.gpus.front().rank; }

void sort_by_rank(std::vector<RankTrace>& traces) {
  std::stable_sort(traces.begin(), traces.end(),
                   [](const RankTrace& a, const RankTrace& b) { return rank_of(a) < rank_of(b); });
  for (std::size_t i = 1; i < traces.size(); ++i) {
    if (rank_of(traces[i]) != rank_of(traces[i - 1])) continue;
    throw SpecError(traces[i].file, 0, fmt::format("is of rank {}, as {} is", rank_of(traces[i]), traces[i - 1].file));
  }
}

}  // namespace

std::vector<RankTrace> ranks_in(const std::string& file, const Trace& trace, const KernelMap& map) {
  const std::vector<KernelClass> classes = interpret(trace, map).classes;
  std::vector<RankTrace> ranks(trace.gpus.size());
  for (std::size_t gpu = 0; gpu < ranks.size(); ++gpu) {
    ranks[gpu].file = file;
    ranks[gpu].trace.gpus = {trace.gpus[gpu]};
    ranks[gpu].trace.time_zero_ns = trace.time_zero_ns;
    ranks[gpu].trace.names = trace.names;
  }
  for (std::size_t i = 0; i < trace.gpu_events.size(); ++i) {
    RankTrace& rank = ranks[trace.gpu_events[i].gpu];
    rank.trace.gpu_events.push_back(trace.gpu_events[i]);
    rank.trace.gpu_events.back().gpu = 0;
    rank.classes.push_back(classes[i]);
  }
  return ranks;
}

SeveralRanks analyze_several(std::vector<RankTrace> traces) {
  sort_by_rank(traces);
  SeveralRanks result;
  result.waits.assign(traces.size(), std::vector<Time>(traces.size()));
  Common common = common_of(traces, result.separate);
  const std::vector<std::int64_t> offsets = clock_offsets(common, traces.size());
  for (std::size_t i = 0; i < traces.size(); ++i) {
    result.ranks.push_back({.file = traces[i].file,
                            .rank = rank_of(traces[i]),
                            .times = breakdown_of(traces[i]),
                            .clock_offset = time_of(offsets[i])});
  }
  set_clocks(common, offsets);
  for (const auto& [kernel, visits] : common) add_kernel(kernel, visits, result);
  if (result.joint.empty()) {
    throw SpecError(traces.front().file, 0, "shares no barrier or collective with the other traces");
  }
  std::stable_sort(result.joint.begin(), result.joint.end(), [](const JointKernel& a, const JointKernel& b) {
    return a.median_skew * static_cast<std::int64_t>(a.count) > b.median_skew * static_cast<std::int64_t>(b.count);
  });
  return result;
}

}  // namespace moeline
