// The shortest step of a pipeline in a V by exhaustive search: an oracle that knows no schedule.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

namespace moeline::testing {

/// Two chunks on each rank, 0 down the ranks and 1 up again; F, B without W, and W take one unit each, data no time. A
/// rank keeps at most `limit` chunks from the start of their F to the end of their W. Micro-batches are alike, so that
/// each kind of pass goes through them in order, and counts of passes are all the state there is.
class PipelineOptimum {
 public:
  PipelineOptimum(int ranks, int micro_batches, int limit) : p_(ranks), m_(micro_batches), limit_(limit) {}

  /// Units from the first pass to the end of the last one.
  int length() {
    for (int length = 6 * m_;; ++length) {
      most_ = length;
      failed_.clear();
      if (ends_in_time(State(static_cast<std::size_t>(p_)), 0)) return length;
    }
  }

 private:
  enum Pass { f0, f1, b1, b0, w, kPasses };
  using Rank = std::array<signed char, kPasses>;  // that have ended
  using State = std::vector<Rank>;

  static int count(const Rank& rank, Pass pass) { return rank[static_cast<std::size_t>(pass)]; }

  [[nodiscard]] bool can_run(const State& s, int r, Pass pass) const {
    const auto at = [&](int rank, Pass of) { return count(s[static_cast<std::size_t>(rank)], of); };
    const int own = at(r, pass);
    if (pass == w) return own < at(r, b1) + at(r, b0);
    if (own == m_) return false;
    const bool first = r == 0, last = r == p_ - 1;
    if ((pass == f0 || pass == f1) && at(r, f0) + at(r, f1) - at(r, w) >= limit_) return false;
    if (pass == f0) return first || at(r - 1, f0) > own;
    if (pass == f1) return (last ? at(r, f0) : at(r + 1, f1)) > own;
    if (pass == b1) return (first ? at(r, f1) : at(r - 1, b1)) > own;
    return (last ? at(r, b1) : at(r + 1, b0)) > own;
  }

  // By each rank's work, and by the way of the last micro-batch from each kind of pass on.
  [[nodiscard]] bool may_end_in_time(const State& state, int now) const {
    for (int r = 0; r < p_; ++r) {
      const Rank& rank = state[static_cast<std::size_t>(r)];
      int left = 6 * m_;
      for (const signed char ended : rank) left -= ended;
      if (now + left > most_) return false;
      const int behind = p_ - 1 - r;
      const std::array<int, 4> way = {behind + 3 * p_ + 1, r + 2 * p_ + 1, behind + p_ + 1, r + 1};
      for (const Pass pass : {f0, f1, b1, b0}) {
        const int passes = m_ - count(rank, pass);
        if (passes > 0 && now + passes + way[static_cast<std::size_t>(pass)] > most_) return false;
      }
    }
    return true;
  }

  bool ends_in_time(const State& state, int now) {
    const auto done = [&](const Rank& rank) { return count(rank, w) == 2 * m_; };
    if (std::all_of(state.begin(), state.end(), done)) return true;
    if (!may_end_in_time(state, now)) return false;
    std::string key;
    for (const Rank& rank : state) key.append(rank.begin(), rank.end());
    const auto known = failed_.find(key);
    if (known != failed_.end() && known->second <= now) return false;
    State next = state;
    if (unit(state, next, 0, now)) return true;
    failed_[key] = now;  // and at any later time
    return false;
  }

  // Every choice of what each rank from `r` on does in this unit.
  bool unit(const State& before, State& after, int r, int now) {
    if (r == p_) return ends_in_time(after, now + 1);
    for (const Pass pass : {b0, b1, f1, f0, w}) {
      if (!can_run(before, r, pass)) continue;
      signed char& ended = after[static_cast<std::size_t>(r)][static_cast<std::size_t>(pass)];
      ++ended;
      if (unit(before, after, r + 1, now)) return true;
      --ended;
    }
    return unit(before, after, r + 1, now);
  }

  int p_, m_, limit_;
  int most_ = 0;
  std::unordered_map<std::string, int> failed_;  // by which time a state cannot end in time any more
};

}  // namespace moeline::testing
