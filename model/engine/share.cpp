#include "engine/share.hpp"

#include <algorithm>

namespace moeline {

void SmPool::enqueue(const Waiting& resident) {
  const auto later = [](const Waiting& a, const Waiting& b) {
    return a.ready != b.ready ? a.ready < b.ready : a.task < b.task;
  };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), resident, later), resident);
}

bool SmPool::admit_next(Waiting& admitted) {
  if (waiting_.empty()) return false;
  Waiting& oldest = waiting_.front();
  const int taken = std::min(free_, oldest.wanted - oldest.held);
  oldest.held += taken;
  free_ -= taken;
  if (oldest.held < oldest.wanted) return false;
  admitted = oldest;
  waiting_.erase(waiting_.begin());  // few wait at a time
  return true;
}

void FairShare::add_demand(ResourceId resource, double amount) {
  if (amount <= 0) return;
  if (demand_[resource] == 0) touched_.push_back(resource);
  demand_[resource] += amount;
}

void FairShare::sum_demands(std::span<Claim* const> claims) {
  for (const ResourceId resource : touched_) demand_[resource] = 0;
  touched_.clear();
  for (const Claim* claim : claims) {
    if (claim->elastic_sms > 0) add_demand(claim->pool, claim->elastic_sms);
    for (const Usage& usage : claim->links) add_demand(usage.link, usage.rate);
  }
}

bool FairShare::all_fit(std::span<const double> left) const {
  return std::all_of(touched_.begin(), touched_.end(), [&](ResourceId r) { return demand_[r] <= left[r]; });
}

void FairShare::operator()(std::span<Claim> claims, std::span<const double> available) {
  open_.clear();
  for (Claim& claim : claims) {
    claim.speed = 1;
    open_.push_back(&claim);
  }
  sum_demands(open_);
  if (all_fit(available)) return;  // the common case: nothing binds

  for (const ResourceId resource : touched_) left_[resource] = available[resource];
  double reached = 0;  // speeds only rise from round to round; rounding must not say otherwise
  while (!open_.empty() && !all_fit(left_)) {
    ResourceId bottleneck = 0;
    double level = 1;
    for (const ResourceId resource : touched_) {
      const double share = std::max(left_[resource], 0.0) / demand_[resource];
      if (share < level) {
        level = share;
        bottleneck = resource;
      }
    }
    if (level == 1) return;  // demands exceed what is left by a rounding error alone
    level = reached = std::max(level, reached);
    const auto frozen = std::stable_partition(open_.begin(), open_.end(), [&](const Claim* claim) {
      const bool shares_sms = claim->elastic_sms > 0 && claim->pool == bottleneck;
      const auto uses = [&](const Usage& usage) { return usage.link == bottleneck && usage.rate > 0; };
      return !shares_sms && std::none_of(claim->links.begin(), claim->links.end(), uses);
    });
    for (auto it = frozen; it != open_.end(); ++it) {
      Claim& claim = **it;
      claim.speed = level;
      if (claim.elastic_sms > 0) left_[claim.pool] -= level * claim.elastic_sms;
      for (const Usage& usage : claim.links) left_[usage.link] -= level * usage.rate;
    }
    open_.erase(frozen, open_.end());
    sum_demands(open_);
  }
}

}  // namespace moeline
