// Which attention group a request goes to.
#pragma once

#include <unordered_map>
#include <vector>

#include "experiments/serve/replica.hpp"

namespace moeline {

class Router {
 public:
  struct Place {
    Replica* replica = nullptr;
    int group = 0;
  };

  Router(RouterRule rule, std::vector<Replica*> replicas);

  /// In turn goes by replicas, and within one to the group that has the fewest. By prefixes: to where the prefix was
  /// sent last, unless another group has 32 requests fewer (the threshold of SGLang's router): from then on there.
  /// REQUIRES: some replica is open.
  Place pick(int prefix);
  [[nodiscard]] bool is_closed() const { return replicas_.empty(); }
  /// All others get no more requests.
  void set_open(std::vector<Replica*> replicas);

 private:
  [[nodiscard]] Place place_of(std::size_t turn) const;
  [[nodiscard]] static Place fewest_in(const std::vector<Replica*>& replicas);

  RouterRule rule_;
  std::vector<Replica*> replicas_;
  std::size_t turn_ = 0;
  std::unordered_map<int, Place> sent_;  // by prefix
};

// Which replicas of a pool get requests: they go out, and are switched on and off with the load.

class Fleet {
 public:
  /// Of these, the first ones are on that are to be on always; all, where nothing is switched.
  Fleet(const Scaling& scaling, std::vector<Replica*> replicas);

  /// Those that get requests.
  [[nodiscard]] std::vector<Replica*> open() const;
  [[nodiscard]] Replica& replica(int index) { return *members_[static_cast<std::size_t>(index)].replica; }

  void go(int index) { members_[static_cast<std::size_t>(index)].is_out = true; }
  void come_back(int index) { members_[static_cast<std::size_t>(index)].is_out = false; }

  /// The next that begins to start, where so many requests are too many for those that are on; else null.
  Replica* switch_on(std::size_t requests);
  void has_started(const Replica& replica);
  /// Whether one has begun to drain, as so few requests are not too many for the others.
  bool switch_off(std::size_t requests);
  /// Those that drained and have nothing left are off.
  void let_rest();
  /// Replicas that start, get requests or drain; those that are out, too.
  [[nodiscard]] int on() const;

 private:
  enum class State { off, starting, open, draining };
  struct Member {
    Replica* replica = nullptr;
    State state = State::open;
    bool is_out = false;
  };
  [[nodiscard]] double groups_of(int replicas) const;
  [[nodiscard]] int staying() const;

  const Scaling& scaling_;
  std::vector<Member> members_;
};

}  // namespace moeline
