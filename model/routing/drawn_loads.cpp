#include "routing/drawn_loads.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>

#include "base/error.hpp"
#include "base/memo.hpp"

namespace moeline {
namespace {

constexpr double kFewRows = 50;  // below, rows are counted one by one
constexpr double kTails = 6;     // standard deviations that are looked at

// P(rows <= most): Poisson's terms one by one, or the normal distribution with half a row of continuity.
double at_most(double most, double mean, double deviation) {
  if (mean >= kFewRows) return 0.5 * std::erfc((mean - most - 0.5) / (deviation * std::numbers::sqrt2));
  double term = std::exp(-mean), sum = 0;
  for (double rows = 0; rows <= most; term *= mean / ++rows) sum += term;
  return sum;
}

int poisson(double mean, BriefRandom& random) {
  const double uniform = random.uniform();
  double term = std::exp(-mean), sum = term;
  int rows = 0;
  while (sum < uniform && term > 0) {
    term *= mean / ++rows;
    sum += term;
  }
  return rows;
}

}  // namespace

double rows_deviation(double mean_rows, double probability) {
  MOELINE_CHECK(mean_rows >= 0 && probability >= 0 && probability <= 1, std::to_string(probability));
  return std::sqrt(mean_rows * (1 - probability));
}

std::vector<RowsOfExpert> rows_of_rank(const RandomChoice& choice) {
  std::vector<RowsOfExpert> rows;
  for (const double chance : chances_of(choice.of_token)) {
    const double mean = choice.tokens * chance;
    rows.push_back({mean, rows_deviation(mean, chance)});
  }
  return rows;
}

std::vector<double> block_probabilities(double mean_rows, double deviation, int block_rows) {
  MOELINE_CHECK(deviation > 0, std::to_string(deviation));
  const double least = mean_rows - kTails * deviation, most = mean_rows + kTails * std::max(deviation, 1.0) + 1;
  const auto first = static_cast<std::size_t>(std::max(0.0, std::floor(least / block_rows)));
  const auto last = static_cast<std::size_t>(std::ceil(most / block_rows));
  std::vector<double> probabilities(last + 1, 0);
  double below = 0;
  for (std::size_t blocks = first; blocks < last; ++blocks) {
    const double up_to = at_most(static_cast<double>(blocks) * block_rows, mean_rows, deviation);
    probabilities[blocks] = up_to - below;
    below = up_to;
  }
  probabilities[last] = 1 - below;
  return probabilities;
}

double expected_padded(double mean_rows, double deviation, int block_rows) {
  constexpr double kRounding = 1e-9;  // of what a sum of shares may exceed a whole number by
  if (deviation == 0) return std::ceil(mean_rows * (1 - kRounding) / block_rows) * block_rows;
  const std::vector<double> probabilities = block_probabilities(mean_rows, deviation, block_rows);
  double blocks = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) blocks += static_cast<double>(i) * probabilities[i];
  return blocks * block_rows;
}

int drawn_rows(double mean_rows, double deviation, BriefRandom& random) {
  MOELINE_CHECK(deviation > 0, std::to_string(deviation));
  if (mean_rows < kFewRows) return poisson(mean_rows, random);
  return static_cast<int>(std::max(0L, std::lround(mean_rows + deviation * random.normal())));
}

namespace {

bool chooses_one_by_one(const RandomChoice& choice) {
  constexpr double kFewChoices = 1024;
  return choice.tokens * choice.of_token.top_k <= kFewChoices;
}

// A number between the two whole ones beside it comes out as either, so that it is what they are on average.
int drawn_whole(double number, BriefRandom& random) { return static_cast<int>(std::floor(number + random.uniform())); }

bool is_skewed(const RandomChoice& choice) { return choice.of_token.skew > 0; }

// Of every slot of all ranks: token by token its experts, all different.
std::vector<int> chosen_rows(const RandomChoice& choice, BriefRandom& random) {
  std::vector<int> rows(static_cast<std::size_t>(choice.of_token.slots), 0);
  if (is_skewed(choice)) {
    TokenChoices tokens(choice.of_token);
    for (int token = drawn_whole(choice.tokens, random); token > 0; --token) tokens.add_token(random, rows);
    return rows;
  }
  std::vector<std::size_t> chosen;
  for (int token = drawn_whole(choice.tokens, random); token > 0; --token) {
    chosen.clear();
    for (int i = 0; i < choice.of_token.top_k; ++i) {
      std::size_t slot = 0;
      do {
        slot = static_cast<std::size_t>(random.uniform() * choice.of_token.slots);
      } while (std::find(chosen.begin(), chosen.end(), slot) != chosen.end());
      chosen.push_back(slot);
      ++rows[slot];
    }
  }
  return rows;
}

// Takes so many rows from all of them, in proportion to what they have.
void take_rows(double excess, std::vector<int>& rows) {
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  double before = 0;
  long taken = 0;
  for (int& each : rows) {
    before += each;
    const long until_now = all > 0 ? std::lround(excess * before / all) : 0;
    each = std::max(0, each - static_cast<int>(until_now - taken));
    taken = until_now;
  }
}

// Of all rows of a rank: over what it would be if its experts' rows were independent.
double rows_dependence(const RandomChoice& choice, int local_experts) {
  const double elsewhere = 1 - static_cast<double>(local_experts) / choice.of_token.slots;
  return std::sqrt(elsewhere * choice.of_token.slots / std::max(1, choice.of_token.slots - 1));
}

// As many of a rank's experts as a part of them has, one from each stretch of popularity, that get `valid` together.
std::vector<RowsOfExpert> some_of(const std::vector<RowsOfExpert>& all, std::size_t count, double valid) {
  if (count == all.size()) return all;
  std::vector<RowsOfExpert> some;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += some.emplace_back(all[(2 * i + 1) * all.size() / (2 * count)]).mean;
  for (RowsOfExpert& expert : some) {
    expert.mean *= valid / sum;
    expert.deviation *= std::sqrt(valid / sum);
  }
  return some;
}

std::vector<RowsOfExpert> rows_of_experts(const ExpertLoad& load, int local_experts) {
  if (is_skewed(load.choice)) {
    return some_of(rows_of_rank(load.choice), static_cast<std::size_t>(local_experts), load.valid);
  }
  return {static_cast<std::size_t>(local_experts), {load.valid / local_experts, load.rows_deviation}};
}

std::vector<int> spread(const std::vector<int>& by_popularity) {
  const std::vector<std::size_t> places = places_by_popularity(by_popularity.size());
  std::vector<int> rows(by_popularity.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[places[i]] = by_popularity[i];
  return rows;
}

// Of one rank by itself.
std::vector<int> scattered_rows(const ExpertLoad& load, int local_experts, BriefRandom& random) {
  std::vector<int> rows;
  for (const RowsOfExpert& expert : rows_of_experts(load, local_experts)) {
    const bool scatters = expert.deviation > 0;  // one that every token chooses does not
    rows.push_back(scatters ? drawn_rows(expert.mean, expert.deviation, random)
                            : static_cast<int>(std::lround(expert.mean)));
  }
  const double more = std::accumulate(rows.begin(), rows.end(), 0.0) - load.valid;
  take_rows(more * (1 - rows_dependence(load.choice, local_experts)), rows);
  return is_skewed(load.choice) ? spread(rows) : rows;
}

BriefRandom random_of(const LoadDraw& draw) { return {draw.seed, draw.number}; }
BriefRandom random_of(const LoadDraw& draw, int rank) {
  return {scrambled(draw.seed << 32U ^ draw.number), static_cast<std::uint64_t>(rank)};
}

ExpertLoad with_group_rows(const ExpertLoad& load, std::vector<int> rows_of_experts) {
  ExpertLoad drawn{.expected_rows = load.expected_rows};
  for (const int rows : rows_of_experts) {
    drawn.valid += rows;
    drawn.rows += padded(rows);
    drawn.hit += rows > 0 ? 1 : 0;
  }
  drawn.received = load.received * drawn.valid / load.valid;
  drawn.group_rows = std::move(rows_of_experts);
  return drawn;
}

ExpertLoad slice_of(const std::vector<int>& rows, const ExpertLoad& load, int local_experts, int rank) {
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(rank) * local_experts;
  return with_group_rows(load, {first, first + local_experts});
}

// In so many draws of all ranks, which are alike, that the rare is seen where a draw costs little: a skewed choice
// costs ten times as much as one of alike experts.
int draws_of_all(const RandomChoice& choice, int ranks) {
  constexpr double kFewest = 64, kLoads = 8192;
  const double kChoices = is_skewed(choice) ? 1 << 16 : 1 << 19;
  const double choices = std::max(1.0, choice.tokens * choice.of_token.top_k);
  return static_cast<int>(std::max(kFewest, std::min(kLoads / ranks, kChoices / choices)));
}

std::vector<ExpertLoad> many_loads(const ExpertLoad& load, int local_experts) {
  constexpr int kLoads = 512;
  std::vector<ExpertLoad> drawn;
  if (!chooses_one_by_one(load.choice)) {
    for (int rank = 0; rank < kLoads; ++rank) drawn.push_back(drawn_load(load, local_experts, {}, rank));
    return drawn;
  }
  const int ranks = load.choice.of_token.slots / local_experts;
  for (int draw = 0; draw < draws_of_all(load.choice, ranks); ++draw) {
    BriefRandom random = random_of({0, static_cast<std::uint64_t>(draw)});
    const std::vector<int> rows = chosen_rows(load.choice, random);
    for (int rank = 0; rank < ranks; ++rank) drawn.push_back(slice_of(rows, load, local_experts, rank));
  }
  return drawn;
}

auto sorting_key(const ExpertLoad& load) { return std::tuple(load.hit, load.valid, load.rows); }
bool is_less(const ExpertLoad& a, const ExpertLoad& b) { return sorting_key(a) < sorting_key(b); }

// Ends of runs of loads that one may stand for: of few rows those that are equal, which are many.
std::vector<std::size_t> ends_of_alike(const std::vector<ExpertLoad>& sorted, bool few_rows) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i <= sorted.size(); ++i) {
    if (!few_rows || i == sorted.size() || is_less(sorted[i - 1], sorted[i])) ends.push_back(i);
  }
  return ends;
}

}  // namespace

ExpertLoad drawn_load(const ExpertLoad& load, int local_experts, const LoadDraw& draw, int rank) {
  if (load.rows_deviation == 0) return load;
  if (chooses_one_by_one(load.choice)) {
    BriefRandom random = random_of(draw);
    return slice_of(chosen_rows(load.choice, random), load, local_experts, rank);
  }
  BriefRandom random = random_of(draw, rank);
  return with_group_rows(load, scattered_rows(load, local_experts, random));
}

TypicalLoads::TypicalLoads(ExpertLoad mean, int local_experts) : mean_(std::move(mean)), local_experts_(local_experts) {
  constexpr std::size_t kMost = 32;
  std::vector<ExpertLoad> drawn = many_loads(mean_, local_experts_);
  const bool drawn_before = chooses_one_by_one(mean_.choice) && is_skewed(mean_.choice);
  const std::vector<ExpertLoad> in_turn = drawn_before ? drawn : std::vector<ExpertLoad>{};
  std::stable_sort(drawn.begin(), drawn.end(), is_less);
  const std::vector<std::size_t> ends = ends_of_alike(drawn, chooses_one_by_one(mean_.choice));
  const std::size_t fewest = ends.size() <= kMost ? 1 : drawn.size() / kMost;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    if (end - first < fewest && end < drawn.size()) continue;
    least_.push_back(drawn[first]);
    loads_.push_back(drawn[(first + end) / 2]);
    weights_.push_back(static_cast<double>(end - first) / static_cast<double>(drawn.size()));
    first = end;
  }
  until_.resize(weights_.size());
  std::partial_sum(weights_.begin(), weights_.end(), until_.begin());
  for (const ExpertLoad& load : in_turn) drawn_before_.push_back(position_of(load));
}

void TypicalLoads::draw(const LoadDraw& draw, std::vector<std::size_t>& of_ranks) const {
  const auto ranks = static_cast<std::size_t>(mean_.choice.of_token.slots / local_experts_);
  if (!drawn_before_.empty()) {
    BriefRandom random = random_of(draw);
    const std::size_t first = random.next() % (drawn_before_.size() / ranks) * ranks, shift = random.next() % ranks;
    for (std::size_t i = 0; i < of_ranks.size(); ++i) of_ranks[i] = drawn_before_[first + (shift + i) % ranks];
    return;
  }
  if (chooses_one_by_one(mean_.choice)) {
    BriefRandom random = random_of(draw);
    const std::vector<int> rows = chosen_rows(mean_.choice, random);
    for (std::size_t i = 0; i < of_ranks.size(); ++i) {
      of_ranks[i] = position_of(slice_of(rows, mean_, local_experts_, static_cast<int>(i % ranks)));
    }
    return;
  }
  BriefRandom random = random_of(draw);
  for (std::size_t& each : of_ranks) {
    const auto found = std::upper_bound(until_.begin(), until_.end() - 1, random.uniform());
    each = static_cast<std::size_t>(found - until_.begin());
  }
}

std::size_t TypicalLoads::position_of(const ExpertLoad& load) const {
  const auto behind = std::upper_bound(least_.begin() + 1, least_.end(), load, is_less);
  return static_cast<std::size_t>(behind - least_.begin()) - 1;
}

std::shared_ptr<const TypicalLoads> typical_loads(const ExpertLoad& load, int local_experts) {
  constexpr std::size_t kManyLoads = 4096;
  static Memo<std::tuple<RandomChoice, int, double>, TypicalLoads> known(kManyLoads);
  return known.get({load.choice, local_experts, load.received}, [&] { return TypicalLoads(load, local_experts); });
}

}  // namespace moeline
