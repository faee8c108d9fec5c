#include "schedules/scenario/rank_variation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {
namespace {

// One sequence of draws for each thing that varies; those of the ranks' kernels count from 0.
enum Sequence : std::uint64_t { kForwardRows = 1U << 30U, kBackwardRows, kKvLen, kRequests, kSlowness };

std::vector<double> draw(int ranks, double relative_deviation, Random& random) {
  constexpr double kLeast = 0.1;
  std::vector<double> drawn(static_cast<std::size_t>(ranks));
  for (double& each : drawn) each = std::max(kLeast, 1 + relative_deviation * random.normal());
  return drawn;
}

// What one rank lacks is another's: the mean is 1.
std::vector<double> draw_shares(int ranks, double relative_deviation, Random& random) {
  std::vector<double> shares = draw(ranks, relative_deviation, random);
  const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / ranks;
  for (double& each : shares) each /= mean;
  return shares;
}

RankVariation::ByLayer draw_rows(const Scenario& s, Sequence sequence) {
  Random random(static_cast<std::uint64_t>(s.seed), sequence);
  RankVariation::ByLayer layers;
  for (int layer = 0; layer < s.layers; ++layer) {
    layers.push_back(draw_shares(s.parallelism.ep, s.routing.rows_spread, random));
  }
  return layers;
}

// Kernels of training were timed in the profile of one rank, who is as fast or slow as any; elsewhere on a mean GPU.
std::vector<double> draw_slowness(const Scenario& s) {
  Random random(static_cast<std::uint64_t>(s.seed), kSlowness);
  std::vector<double> slowness = draw(s.parallelism.group(), s.speed_spread, random);
  const double timed = s.phase() == WorkloadPhase::train ? slowness.front() : 1;
  for (double& each : slowness) each /= timed;
  return slowness;
}

// The slowest GPUs of several groups lie as they are expected to; which group has which is drawn. (The slowest of n is
// below x with the n-th power of the probability that one is.)
std::vector<double> slowest_of_groups(int groups, const Scenario& s) {
  std::vector<double> slowest;
  for (int i = 0; i < groups; ++i) {
    const double all_below = probability_in_order(i, groups);
    slowest.push_back(1 + s.speed_spread * normal_quantile(std::pow(all_below, 1.0 / s.parallelism.group())));
  }
  Random random(static_cast<std::uint64_t>(s.seed), kSlowness);
  for (std::size_t left = slowest.size(); left > 1; --left) {
    std::swap(slowest[left - 1], slowest[static_cast<std::size_t>(random.uniform() * static_cast<double>(left))]);
  }
  return slowest;
}

}  // namespace

std::vector<double> expected_slowness(int ranks, double speed_spread, double first) {
  std::vector<double> slowness = expected_in_order(ranks);
  for (double& each : slowness) each = 1 + speed_spread * each;
  const auto distance = [&](double a, double b) { return std::abs(a - first) < std::abs(b - first); };
  std::iter_swap(slowness.begin(), std::min_element(slowness.begin(), slowness.end(), distance));
  for (double& each : slowness) each /= first;
  slowness.front() = 1;
  return slowness;
}

double slowest_of(int ranks, double speed_spread) { return 1 + speed_spread * expected_maximum(ranks); }

RankVariation draw_ranks(const Scenario& s) {
  const DecodeWorkload* decode = decode_of(s.workload);
  const auto seed = static_cast<std::uint64_t>(s.seed);
  RankVariation ranks;
  if (s.routing.rows_spread > 0) {
    ranks.forward_rows = draw_rows(s, kForwardRows);
    ranks.backward_rows = draw_rows(s, kBackwardRows);
  }
  if (decode != nullptr && decode->kv_len_spread > 0) {
    Random random(seed, kKvLen);
    ranks.kv_len = draw(s.parallelism.attention_groups(),
                        decode->kv_len_spread / std::sqrt(decode->batch_size) / decode->kv_len, random);
    for (double& each : ranks.kv_len) each *= decode->kv_len;
  }
  if (decode != nullptr && decode->batch_size_spread > 0) {
    Random random(seed, kRequests);
    const int fewest = s.kind().micro_batches;  // one for each
    for (const double each :
         draw_shares(s.parallelism.attention_groups(), decode->batch_size_spread / decode->batch_size, random)) {
      ranks.requests.push_back(std::max(fewest, static_cast<int>(std::lround(each * decode->batch_size))));
    }
  }
  if (s.speed_spread > 0) ranks.slowness = draw_slowness(s);
  return ranks;
}

RankVariation folded_ranks(const Scenario& s) {
  RankVariation ranks;
  if (s.speed_spread == 0) return ranks;
  if (s.phase() != WorkloadPhase::train && !is_staged(s)) {
    ranks.slowness = {slowest_of(s.parallelism.group(), s.speed_spread)};
  } else if (s.kind().pipeline || is_staged(s)) {
    ranks.slowness = slowest_of_groups(s.parallelism.pp, s);
  }
  return ranks;
}

}  // namespace moeline
