#include "routing/expert_moves.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"

namespace moeline {
namespace {

using Gpus = std::set<int>;

std::map<int, Gpus> holders_of(const Placement& placement) {
  std::map<int, Gpus> holders;
  for (int slot = 0; slot < placement.slots(); ++slot) {
    holders[placement.expert_of_slot[static_cast<std::size_t>(slot)]].insert(placement.gpu_of(slot));
  }
  return holders;
}

// Copies that each GPU has sent and received over one kind of link.
class Traffic {
 public:
  explicit Traffic(int gpus) : sent_(static_cast<std::size_t>(gpus), 0), received_(sent_) {}

  void send(const std::vector<int>& from_any_of, int to) {
    const int from =
        *std::min_element(from_any_of.begin(), from_any_of.end(), [&](int a, int b) { return sent(a) < sent(b); });
    ++sent(from);
    ++received_[static_cast<std::size_t>(to)];
  }
  [[nodiscard]] int busiest() const {
    return std::max(*std::max_element(sent_.begin(), sent_.end()),
                    *std::max_element(received_.begin(), received_.end()));
  }

 private:
  int& sent(int gpu) { return sent_[static_cast<std::size_t>(gpu)]; }

  std::vector<int> sent_, received_;
};

}  // namespace

ExpertMoves expert_moves(const std::vector<Placement>& before, const std::vector<Placement>& after) {
  MOELINE_CHECK(before.size() == after.size() && !before.empty(), std::to_string(after.size()));
  const int gpus = before.front().gpus, gpus_per_node = gpus / before.front().nodes;
  Traffic nics(gpus), nvlinks(gpus);
  ExpertMoves moves;
  for (std::size_t layer = 0; layer < before.size(); ++layer) {
    const std::map<int, Gpus> old = holders_of(before[layer]);
    for (const auto& [expert, needed_by] : holders_of(after[layer])) {
      const Gpus& holders = old.at(expert);
      for (const int gpu : needed_by) {
        if (holders.contains(gpu)) continue;
        ++moves.all;
        const int node = gpu / gpus_per_node * gpus_per_node;
        const std::vector<int> near(holders.lower_bound(node), holders.lower_bound(node + gpus_per_node));
        if (near.empty()) {
          nics.send({holders.begin(), holders.end()}, gpu);
        } else {
          nvlinks.send(near, gpu);
        }
      }
    }
  }
  moves.busiest_nic = nics.busiest();
  moves.busiest_nvlink_port = nvlinks.busiest();
  return moves;
}

}  // namespace moeline
