// Which replicas of a pool get requests: they go out, and are switched on and off with the load.
#pragma once

#include <vector>

#include "experiments/serve/replica.hpp"

namespace moeline {

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
