#include "routing/popularity.hpp"

#include <boost/math/tools/toms748_solve.hpp>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "base/error.hpp"
#include "base/memo.hpp"

namespace moeline {
namespace {

// Where a monotone function, with other signs at both ends, is 0.
template <class Function>
double root_of(Function&& function, double low, double high) {
  constexpr int kBits = 40;
  std::uintmax_t steps = 100;
  const auto [below, above] =
      boost::math::tools::toms748_solve(function, low, high, boost::math::tools::eps_tolerance<double>(kBits), steps);
  return (below + above) / 2;
}

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double weight_of(std::size_t place, double skew) { return std::pow(static_cast<double>(place + 1), -skew); }

std::vector<double> weights_of_rank(const ExpertChoice& choice) {
  std::vector<double> weights(static_cast<std::size_t>(choice.local()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = weight_of(i, choice.skew);
  return weights;
}

std::vector<double> chances_by(const std::vector<double>& weights, double log_time) {
  std::vector<double> chances;
  chances.reserve(weights.size());
  for (const double weight : weights) chances.push_back(-std::expm1(-std::exp(log_time) * weight));
  return chances;
}

std::vector<double> solved_chances(const ExpertChoice& choice) {
  const double of_rank = 1.0 * choice.top_k / choice.ranks;
  const std::vector<double> weights = weights_of_rank(choice);
  if (choice.skew == 0 || choice.top_k == choice.slots) {
    return std::vector<double>(weights.size(), of_rank / static_cast<double>(weights.size()));
  }
  // At the one end of time no expert is chosen, at the other even the least popular is.
  constexpr double kNone = -24, kPast = 4;
  const auto too_many = [&](double log_time) { return sum_of(chances_by(weights, log_time)) - of_rank; };
  return chances_by(weights, root_of(too_many, kNone, kPast - std::log(weights.back())));
}

}  // namespace

std::vector<double> chances_of(const ExpertChoice& choice) {
  MOELINE_CHECK(choice.top_k > 0 && choice.top_k <= choice.slots && choice.slots % choice.ranks == 0,
                std::to_string(choice.top_k));
  constexpr std::size_t kManyChoices = 256;
  static Memo<ExpertChoice, std::vector<double>> known(kManyChoices);
  return *known.get(choice, [&] { return solved_chances(choice); });
}

// Each next one goes a golden section of the rank further.
std::vector<std::size_t> places_by_popularity(std::size_t local) {
  constexpr double kGolden = 0.618;
  std::size_t step = std::max<std::size_t>(1, static_cast<std::size_t>(kGolden * static_cast<double>(local)));
  while (std::gcd(step, local) > 1) ++step;
  std::vector<std::size_t> places(local);
  for (std::size_t i = 0; i < local; ++i) places[i] = i * step % local;
  return places;
}

double experts_hit(double tokens, const ExpertChoice& choice) {
  if (tokens <= 0) return 0;
  double hit = 0;
  for (const double chance : chances_of(choice)) hit -= std::expm1(tokens * std::log1p(-chance));
  return hit * choice.ranks;
}

double skew_that_hits(double hit, double tokens, ExpertChoice choice) {
  const auto too_many = [&](double skew) {
    choice.skew = skew;
    return experts_hit(tokens, choice) - hit;
  };
  if (too_many(0) <= 0) return 0;
  return too_many(kMostSkew) >= 0 ? kMostSkew : root_of(too_many, 0, kMostSkew);
}

TokenChoices::TokenChoices(const ExpertChoice& choice)
    : choice_(choice),
      slot_of_(static_cast<std::size_t>(choice.slots)),
      weights_(slot_of_.size()),
      all_weights_(0),
      is_chosen_(weights_.size(), 0) {
  const auto ranks = static_cast<std::size_t>(choice_.ranks), local = static_cast<std::size_t>(choice_.local());
  const std::vector<std::size_t> on_rank = places_by_popularity(local);
  for (std::size_t place = 0; place < weights_.size(); ++place) {
    weights_[place] = weight_of(place / ranks, choice.skew);
    slot_of_[place] = place % ranks * local + on_rank[place / ranks];
  }
  all_weights_ = sum_of(weights_);
}

// `left`: the weights of those that are not chosen yet. What rounding leaves goes to the last of them.
std::size_t TokenChoices::next_choice(double uniform, double left) const {
  double until = uniform * left;
  std::size_t last = 0;
  for (std::size_t place = 0; place < weights_.size(); ++place) {
    if (is_chosen_[place] != 0) continue;
    last = place;
    until -= weights_[place];
    if (until < 0) break;
  }
  return last;
}

void TokenChoices::add_token(BriefRandom& random, std::vector<int>& rows_of_slots) {
  chosen_.clear();
  double left = all_weights_;
  for (int i = 0; i < choice_.top_k; ++i) {
    const std::size_t place = next_choice(random.uniform(), left);
    is_chosen_[place] = 1;
    left -= weights_[place];
    chosen_.push_back(place);
    ++rows_of_slots[slot_of_[place]];
  }
  for (const std::size_t place : chosen_) is_chosen_[place] = 0;
}

}  // namespace moeline
