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

}  // namespace

std::vector<double> draw_slowness(int ranks, double speed_spread, Random& random) {
  std::vector<double> slowness = draw(ranks, speed_spread, random);
  const double first = slowness.front();
  for (double& each : slowness) each /= first;
  return slowness;
}

RankVariation draw_ranks(const Scenario& s) {
  const DecodeWorkload* decode = std::get_if<DecodeWorkload>(&s.workload);
  const auto seed = static_cast<std::uint64_t>(s.seed);
  RankVariation ranks;
  if (s.routing.rows_spread > 0) {
    ranks.forward_rows = draw_rows(s, kForwardRows);
    ranks.backward_rows = draw_rows(s, kBackwardRows);
  }
  if (decode != nullptr && decode->kv_len_spread > 0) {
    Random random(seed, kKvLen);
    ranks.kv_len =
        draw(s.parallelism.ep, decode->kv_len_spread / std::sqrt(decode->batch_size) / decode->kv_len, random);
    for (double& each : ranks.kv_len) each *= decode->kv_len;
  }
  if (decode != nullptr && decode->batch_size_spread > 0) {
    Random random(seed, kRequests);
    const int fewest = s.kind().micro_batches;  // one for each
    for (const double each : draw_shares(s.parallelism.ep, decode->batch_size_spread / decode->batch_size, random)) {
      ranks.requests.push_back(std::max(fewest, static_cast<int>(std::lround(each * decode->batch_size))));
    }
  }
  if (s.speed_spread > 0) {
    Random random(seed, kSlowness);
    ranks.slowness = draw_slowness(s.parallelism.ep, s.speed_spread, random);
  }
  return ranks;
}

}  // namespace moeline
