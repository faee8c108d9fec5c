#include "routing/destinations.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace moeline {
namespace {

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    squares_ += value * value;
    ++count_;
  }
  [[nodiscard]] double value() const { return sum_ / count_; }
  [[nodiscard]] double standard_error() const {
    return std::sqrt(std::max(squares_ / count_ - value() * value(), 0.0) / (count_ - 1));
  }

 private:
  double sum_ = 0;
  double squares_ = 0;
  double count_ = 0;
};

struct SpreadMean {
  Destinations nodes, gpus;
  Mean of_nodes, of_gpus;
};

}  // namespace

Destinations::Destinations(const Placement& placement, int experts, Level level)
    : shares_(static_cast<std::size_t>(experts)),
      missed_(static_cast<std::size_t>(level == Level::node ? placement.nodes : placement.gpus), 1) {
  const std::vector<int> copies = copies_of(placement, experts);
  for (int slot = 0; slot < placement.slots(); ++slot) {
    const auto expert = static_cast<std::size_t>(placement.expert_of_slot[static_cast<std::size_t>(slot)]);
    const auto place =
        static_cast<std::size_t>(level == Level::node ? placement.node_of(slot) : placement.gpu_of(slot));
    std::vector<Share>& shares = shares_[expert];
    if (shares.empty() || shares.back().place != place) shares.push_back({place, 0});  // slots come place by place
    shares.back().of_copies += 1.0 / copies[expert];
  }
}

double Destinations::expected(std::span<const std::size_t> experts) { return expected_others(experts, -1); }

double Destinations::expected_others(std::span<const std::size_t> experts, int own) {
  find_missed(experts);
  double reached = 0;
  for (const std::size_t place : touched_) {
    if (static_cast<int>(place) != own) reached += 1 - missed_[place];
    missed_[place] = 1;
  }
  return reached;
}

void Destinations::find_missed(std::span<const std::size_t> experts) {
  touched_.clear();
  for (const std::size_t expert : experts) {
    for (const Share& share : shares_[expert]) {
      if (missed_[share.place] == 1) touched_.push_back(share.place);
      missed_[share.place] *= std::max(1 - share.of_copies, 0.0);
    }
  }
}

std::vector<SpreadEstimate> expected_spreads(const Gating& gating, const std::vector<double>& loads,
                                             std::span<const Placement> placements, unsigned seed, int tokens) {
  MOELINE_CHECK(tokens > 1, std::to_string(tokens));
  std::vector<SpreadMean> means;
  for (const Placement& placement : placements) {
    means.push_back({{placement, gating.experts, Destinations::Level::node},
                     {placement, gating.experts, Destinations::Level::gpu},
                     {},
                     {}});
  }
  TokenStream stream(gating, seed, loads);
  for (int token = 0; token < tokens; ++token) {
    const std::vector<std::size_t>& experts = stream.next();
    for (SpreadMean& mean : means) {
      mean.of_nodes.add(mean.nodes.expected(experts));
      mean.of_gpus.add(mean.gpus.expected(experts));
    }
  }
  std::vector<SpreadEstimate> estimates;
  estimates.reserve(means.size());
  for (const SpreadMean& mean : means) {
    estimates.push_back({{mean.of_nodes.value(), mean.of_gpus.value()},
                         {mean.of_nodes.standard_error(), mean.of_gpus.standard_error()}});
  }
  return estimates;
}

}  // namespace moeline
