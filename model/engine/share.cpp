#include "engine/share.hpp"

#include <algorithm>

namespace moeline {

void SmPool::enqueue(const Waiting& resident) {
  const auto later = [](const Waiting& a, const Waiting& b) {
    return a.ready != b.ready ? a.ready < b.ready : a.task < b.task;
  };
  // One that has begun to take SMs stays first: with two such, each could wait for what the other holds.
  const bool has_begun = !waiting_.empty() && waiting_.front().held > 0;
  waiting_.insert(std::upper_bound(waiting_.begin() + has_begun, waiting_.end(), resident, later), resident);
}

std::optional<SmPool::Waiting> SmPool::admit_next() {
  if (waiting_.empty()) return std::nullopt;
  Waiting& oldest = waiting_.front();
  const int taken = std::min(free_, oldest.wanted - oldest.held);
  oldest.held += taken;
  free_ -= taken;
  if (taken == 0 && !oldest.complete()) return std::nullopt;
  const Waiting admitted = oldest;
  if (admitted.complete()) waiting_.erase(waiting_.begin());  // few wait at a time
  return admitted;
}

void FairShare::sum_demands(std::span<Claim* const> claims) {
  for (const ResourceId resource : touched()) demand_[resource] = 0;
  touched_count_ = 0;
  for (const Claim* claim : claims) {
    if (claim->elastic_sms > 0) add_demand(claim->pool, claim->elastic_sms);
    for (const Usage& usage : claim->links) add_demand(usage.link, usage.rate);
  }
}

bool FairShare::all_fit(std::span<const double> left) const {
  return std::ranges::all_of(touched(), [&](ResourceId r) { return demand_[r] <= left[r]; });
}

template <class Is>
void FairShare::freeze(Is is_frozen, double level, ResourceId limit) {
  auto still_open = open_.begin();
  for (Claim* claim : open_) {
    if (!is_frozen(*claim)) {
      *still_open++ = claim;
      continue;
    }
    claim->speed = std::min(claim->most, level);
    claim->limit = limit;
    if (claim->elastic_sms > 0) left_[claim->pool] -= claim->speed * claim->elastic_sms;
    for (const Usage& usage : claim->links) left_[usage.link] -= claim->speed * usage.rate;
  }
  open_.erase(still_open, open_.end());
  sum_demands(open_);
}

void FairShare::operator()(std::span<Claim* const> claims, std::span<const double> available) {
  bool limited = false;
  for (Claim* claim : claims) {
    claim->speed = claim->most;
    claim->limit = kNoPool;
    limited = limited || claim->most < 1;
  }
  sum_demands(claims);
  if (all_fit(available)) return;  // the common case: nothing binds

  open_.assign(claims.begin(), claims.end());
  for (const ResourceId resource : touched()) left_[resource] = available[resource];
  double reached = 0;  // speeds only rise from round to round; rounding must not say otherwise
  while (!open_.empty() && !all_fit(left_)) {
    ResourceId bottleneck = 0;
    double level = 1;
    for (const ResourceId resource : touched()) {
      const double share = std::max(left_[resource], 0.0) / demand_[resource];
      if (share < level) {
        level = share;
        bottleneck = resource;
      }
    }
    const auto below = [&](const Claim& claim) { return claim.most < 1 && claim.most <= level; };
    if (limited && std::any_of(open_.begin(), open_.end(), [&](const Claim* claim) { return below(*claim); })) {
      freeze(below, 1, kNoPool);
      continue;
    }
    if (level == 1) return;  // demands exceed what is left by a rounding error alone
    level = reached = std::max(level, reached);
    const auto bound = [&](const Claim& claim) {
      const bool shares_sms = claim.elastic_sms > 0 && claim.pool == bottleneck;
      const auto uses = [&](const Usage& usage) { return usage.link == bottleneck && usage.rate > 0; };
      return shares_sms || std::any_of(claim.links.begin(), claim.links.end(), uses);
    };
    freeze(bound, level, bottleneck);
  }
}

}  // namespace moeline
