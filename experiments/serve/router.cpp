#include "experiments/serve/router.hpp"

#include <algorithm>

namespace moeline {

Router::Router(RouterRule rule, std::vector<Replica*> replicas) : rule_(rule), replicas_(std::move(replicas)) {}

Router::Place Router::fewest_in(const std::vector<Replica*>& replicas) {
  Place fewest;
  for (Replica* replica : replicas) {
    for (int group = 0; group < replica->groups(); ++group) {
      const bool is_less = fewest.replica == nullptr || replica->in(group) < fewest.replica->in(fewest.group);
      if (is_less) fewest = {replica, group};
    }
  }
  return fewest;
}

Router::Place Router::pick(int prefix) {
  constexpr std::size_t kTooMany = 32;
  if (rule_ == RouterRule::round_robin) return fewest_in({replicas_[turn_++ % replicas_.size()]});
  const Place fewest = fewest_in(replicas_);
  if (rule_ == RouterRule::least_loaded || prefix < 0) return fewest;
  Place& before = sent_.try_emplace(prefix, fewest).first->second;
  if (before.replica->in(before.group) > fewest.replica->in(fewest.group) + kTooMany) before = fewest;
  return before;
}

void Router::set_open(std::vector<Replica*> replicas) {
  replicas_ = std::move(replicas);
  std::erase_if(sent_, [&](const auto& each) {
    return std::find(replicas_.begin(), replicas_.end(), each.second.replica) == replicas_.end();
  });
}

}  // namespace moeline
