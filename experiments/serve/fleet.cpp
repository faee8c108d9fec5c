#include "experiments/serve/fleet.hpp"

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

// Of all groups, replica by replica.
Router::Place Router::place_of(std::size_t turn) const {
  const auto groups = static_cast<std::size_t>(replicas_.front()->groups());
  const std::size_t place = turn % (replicas_.size() * groups);
  return {replicas_[place / groups], static_cast<int>(place % groups)};
}

Router::Place Router::pick(int prefix) {
  constexpr std::size_t kTooMany = 32;
  if (rule_ == RouterRule::round_robin) return fewest_in({replicas_[turn_++ % replicas_.size()]});
  if (rule_ == RouterRule::ranks_in_turn) return place_of(turn_++);
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

Fleet::Fleet(const Scaling& scaling, std::vector<Replica*> replicas) : scaling_(scaling) {
  for (Replica* replica : replicas) {
    const bool is_on = !scaling.applies() || static_cast<int>(members_.size()) < scaling.least;
    members_.push_back({replica, is_on ? State::open : State::off});
  }
}

std::vector<Replica*> Fleet::open() const {
  std::vector<Replica*> open;
  for (const Member& each : members_) {
    if (each.state == State::open && !each.is_out) open.push_back(each.replica);
  }
  return open;
}

// Attention groups.
double Fleet::groups_of(int replicas) const { return double{1} * replicas * members_.front().replica->groups(); }

int Fleet::staying() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [](const Member& each) {
    return each.state == State::starting || each.state == State::open;
  }));
}

Replica* Fleet::switch_on(std::size_t requests) {
  if (static_cast<double>(requests) <= scaling_.on_above * groups_of(staying())) return nullptr;
  const auto found =
      std::find_if(members_.begin(), members_.end(), [](const Member& each) { return each.state == State::off; });
  if (found == members_.end()) return nullptr;
  found->state = State::starting;
  return found->replica;
}

void Fleet::has_started(const Replica& replica) {
  for (Member& each : members_) {
    if (each.replica == &replica) each.state = State::open;
  }
}

bool Fleet::switch_off(std::size_t requests) {
  const int others = staying() - 1;
  if (others < scaling_.least || static_cast<double>(requests) >= scaling_.off_below * groups_of(others)) return false;
  const auto last =
      std::find_if(members_.rbegin(), members_.rend(), [](const Member& each) { return each.state == State::open; });
  if (last == members_.rend()) return false;
  last->state = State::draining;
  return true;
}

void Fleet::let_rest() {
  for (Member& each : members_) {
    if (each.state == State::draining && each.replica->is_empty()) each.state = State::off;
  }
}

int Fleet::on() const {
  return static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [](const Member& each) { return each.state != State::off; }));
}

}  // namespace moeline
