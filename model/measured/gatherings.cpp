#include "measured/gatherings.hpp"

#include <algorithm>

#include "measured/quantile.hpp"

namespace moeline {

namespace {

Gathering gathering_of(const std::vector<Visits>& by_member, const std::vector<std::int64_t>& ahead_ns, std::size_t k) {
  const auto arrives = [&](std::size_t m) { return by_member[m][k].arrives_ns - ahead_ns[m]; };
  const auto leaves = [&](std::size_t m) { return by_member[m][k].leaves_ns - ahead_ns[m]; };
  Gathering g{.first_ns = arrives(0), .last_ns = arrives(0)};
  std::int64_t first_end = leaves(0), last_end = first_end;
  for (std::size_t m = 1; m < by_member.size(); ++m) {
    if (arrives(m) > g.last_ns) {
      g.last_ns = arrives(m);
      g.last = m;
    }
    g.first_ns = std::min(g.first_ns, arrives(m));
    first_end = std::min(first_end, leaves(m));
    last_end = std::max(last_end, leaves(m));
  }
  g.end_spread_ns = last_end - first_end;
  g.length_ns = last_end - g.first_ns;
  return g;
}

std::int64_t length_of_gathering(const Gathering& g) { return g.length_ns; }

}  // namespace

std::vector<Gathering> gatherings_of(const GroupKernel& kernel, const std::vector<std::int64_t>& ahead_ns) {
  std::vector<Gathering> all;
  for (std::size_t k = 0; k < kernel.visits.front().size(); ++k) {
    all.push_back(gathering_of(kernel.visits, ahead_ns, k));
  }
  return all;
}

std::int64_t quantile_of(const std::vector<Gathering>& gatherings, double share,
                         std::int64_t (*value)(const Gathering&)) {
  std::vector<std::int64_t> values;
  for (const Gathering& each : gatherings) values.push_back(value(each));
  return quantile(std::move(values), share);
}

bool end_together(const std::vector<Gathering>& gatherings) {
  return 2 * quantile_of(gatherings, 0.5, end_spread_of) <= quantile_of(gatherings, 0.5, length_of_gathering);
}

}  // namespace moeline
