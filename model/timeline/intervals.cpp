#include "timeline/intervals.hpp"

#include <algorithm>

namespace moeline {

namespace {

void sort_by_start(std::vector<Interval>& intervals) {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  // kernels of one stream come in order
  if (!std::is_sorted(intervals.begin(), intervals.end(), earlier))
    std::sort(intervals.begin(), intervals.end(), earlier);
}

}  // namespace

std::vector<Interval> unite(std::vector<Interval> intervals) {
  sort_by_start(intervals);
  std::vector<Interval> united;
  for (const Interval& interval : intervals) {
    if (interval.end <= interval.start) continue;
    if (!united.empty() && interval.start <= united.back().end) {
      united.back().end = std::max(united.back().end, interval.end);
    } else {
      united.push_back(interval);
    }
  }
  return united;
}

Time covered_by(std::vector<Interval> intervals) {
  sort_by_start(intervals);
  Time sum{};
  Time end = Time::min();
  for (const Interval& interval : intervals) {
    const Time start = std::max(interval.start, end);
    if (interval.end <= start) continue;
    sum += interval.end - start;
    end = interval.end;
  }
  return sum;
}

Time total(const std::vector<Interval>& disjoint) {
  Time sum{};
  for (const Interval& interval : disjoint) sum += interval.end - interval.start;
  return sum;
}

Time overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Time sum{};
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    sum += std::max(Time::zero(), std::min(i->end, j->end) - std::max(i->start, j->start));
    if (i->end < j->end) {
      ++i;
    } else {
      ++j;
    }
  }
  return sum;
}

std::vector<Interval> subtract(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> left;
  auto next = b.begin();
  for (Interval interval : a) {
    while (next != b.end() && next->end <= interval.start) ++next;
    for (auto each = next; each != b.end() && each->start < interval.end; ++each) {
      if (each->start > interval.start) left.push_back({interval.start, each->start});
      interval.start = each->end;
    }
    if (interval.start < interval.end) left.push_back(interval);
  }
  return left;
}

}  // namespace moeline
