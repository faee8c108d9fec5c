#include "experiments/run/rank_lanes.hpp"

#include <algorithm>
#include <array>

// Twice as many at a time where the processor can: which it is, the program finds out when it starts. The same numbers
// either way, since each is rounded by itself. With GCC alone: nobody tried it under the sanitizers, for which Clang
// builds.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MOELINE_WIDE [[gnu::target_clones("avx2", "default")]]
#define MOELINE_EACH_BY_ITSELF _Pragma("GCC ivdep")  // `to` may be where the others are
#else
#define MOELINE_WIDE
#define MOELINE_EACH_BY_ITSELF
#endif

namespace moeline {

MOELINE_WIDE void sum_of_each(const double* some, const double* others, std::size_t ranks, double* to) {
  MOELINE_EACH_BY_ITSELF
  for (std::size_t rank = 0; rank < ranks; ++rank) to[rank] = some[rank] + others[rank];
}

MOELINE_WIDE void sum_of_each(const double* some, double other, std::size_t ranks, double* to) {
  MOELINE_EACH_BY_ITSELF
  for (std::size_t rank = 0; rank < ranks; ++rank) to[rank] = some[rank] + other;
}

MOELINE_WIDE void later_of_each(const double* some, const double* others, std::size_t ranks, double* to) {
  MOELINE_EACH_BY_ITSELF
  for (std::size_t rank = 0; rank < ranks; ++rank) to[rank] = std::max(some[rank], others[rank]);
}

MOELINE_WIDE void later_of_each(const double* some, double other, std::size_t ranks, double* to) {
  MOELINE_EACH_BY_ITSELF
  for (std::size_t rank = 0; rank < ranks; ++rank) to[rank] = std::max(some[rank], other);
}

MOELINE_WIDE void weighted_of_each(double mean, double of_some, const double* some, double of_others,
                                   const double* others, std::size_t ranks, double* to) {
  MOELINE_EACH_BY_ITSELF
  for (std::size_t rank = 0; rank < ranks; ++rank) to[rank] = mean + of_some * some[rank] + of_others * others[rank];
}

// In lanes, which do not wait for each other.
MOELINE_WIDE double latest(const double* some, std::size_t ranks) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> lanes;
  lanes.fill(*some);
  const double* const end = some + ranks;
  for (; static_cast<std::size_t>(end - some) >= kLanes; some += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = std::max(lanes[i], some[i]);
  }
  for (; some != end; ++some) lanes[0] = std::max(lanes[0], *some);
  return *std::max_element(lanes.begin(), lanes.end());
}

}  // namespace moeline
