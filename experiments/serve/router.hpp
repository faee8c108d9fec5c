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
  [[nodiscard]] static Place fewest_in(const std::vector<Replica*>& replicas);

  RouterRule rule_;
  std::vector<Replica*> replicas_;
  std::size_t turn_ = 0;
  std::unordered_map<int, Place> sent_;  // by prefix
};

}  // namespace moeline
