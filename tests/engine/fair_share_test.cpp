// FairShare against max-min fairness computed in another way, on random claims.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "engine/share.hpp"
#include "tests/support/dice.hpp"

TEST_SUITE("engine/fair_share") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Claims as one domain of a graph would make them: integer demands, so that near-ties are ties.
struct ClaimSet {
  explicit ClaimSet(Dice& dice) : usages(1 + dice.below(7)) {
    for (std::size_t resource = 0; resource < kResources; ++resource) {
      available.push_back(dice.percent(10) && resource < kPools ? 0 : static_cast<double>(1 + dice.below(60)));
    }
    for (std::vector<Usage>& of_task : usages) {
      Claim claim;
      if (dice.percent(60)) claim.pool = static_cast<ResourceId>(dice.below(kPools));
      if (claim.pool != kNoPool && dice.percent(70)) claim.elastic_sms = static_cast<double>(1 + dice.below(60));
      for (ResourceId link = kPools; link < kResources; ++link) {
        if (dice.percent(40)) of_task.push_back({link, static_cast<double>(dice.below(40))});
      }
      claim.links = of_task;
      if (dice.percent(30)) claim.most = static_cast<double>(1 + dice.below(20)) / 20;
      claims.push_back(claim);
    }
  }

  [[nodiscard]] double demand(std::size_t claim, std::size_t resource) const {
    double sum = claims[claim].pool == resource ? claims[claim].elastic_sms : 0;
    for (const Usage& usage : usages[claim]) sum += usage.link == resource ? usage.rate : 0;
    return sum;
  }
  [[nodiscard]] double taken(std::size_t resource, std::span<const double> speeds) const {
    double sum = 0;
    for (std::size_t claim = 0; claim < claims.size(); ++claim) sum += demand(claim, resource) * speeds[claim];
    return sum;
  }
  [[nodiscard]] bool fits(std::span<const double> speeds) const {
    for (std::size_t resource = 0; resource < kResources; ++resource) {
      if (taken(resource, speeds) > available[resource] + 1e-12) return false;
    }
    return true;
  }

  static constexpr std::size_t kPools = 2, kResources = 5;
  std::vector<std::vector<Usage>> usages;
  std::vector<double> available;
  std::vector<Claim> claims;
};

// From the definition: find by bisection how far all open speeds rise together, then close whoever cannot rise alone.
std::vector<double> fair_speeds_by_bisection(const ClaimSet& set) {
  std::vector<double> speeds(set.claims.size(), 0.0);
  std::vector<bool> open(speeds.size(), true);
  const auto raised = [&](double level) {
    std::vector<double> to = speeds;
    for (std::size_t claim = 0; claim < to.size(); ++claim) {
      if (open[claim]) to[claim] = std::min(level, set.claims[claim].most);
    }
    return to;
  };
  while (std::find(open.begin(), open.end(), true) != open.end()) {
    double low = 0, high = 1;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (set.fits(raised(middle)) ? low : high) = middle;
    }
    speeds = raised(low);
    for (std::size_t claim = 0; claim < speeds.size(); ++claim) {
      std::vector<double> more = speeds;
      more[claim] += 1e-9;
      if (more[claim] > set.claims[claim].most || !set.fits(more)) open[claim] = false;
    }
  }
  return speeds;
}

}  // namespace

TEST_CASE("speeds agree with max-min fairness computed from its definition, none above its limit") {
  Dice dice(1);
  FairShare share(ClaimSet::kResources);  // one for all sets: nothing of a set is left to the next
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    ClaimSet set(dice);
    std::vector<Claim*> claims;
    for (Claim& claim : set.claims) claims.push_back(&claim);
    share(claims, set.available);
    const std::vector<double> expected = fair_speeds_by_bisection(set);
    for (std::size_t claim = 0; claim < expected.size(); ++claim) {
      CHECK(set.claims[claim].speed == doctest::Approx(expected[claim]).epsilon(1e-8));
    }
  }
}

}  // TEST_SUITE("engine/fair_share")
