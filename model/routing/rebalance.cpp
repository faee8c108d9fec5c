#include "routing/rebalance.hpp"

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

namespace {

void average_in(Loads& average, const Loads& newest, double weight) {
  for (std::size_t layer = 0; layer < average.size(); ++layer) {
    for (std::size_t expert = 0; expert < average[layer].size(); ++expert) {
      average[layer][expert] += weight * (newest[layer][expert] - average[layer][expert]);
    }
  }
}

int moved_copies(const std::vector<Placement>& before, const std::vector<Placement>& after) {
  int moved = 0;
  for (std::size_t layer = 0; layer < before.size(); ++layer) moved += moved_copies(before[layer], after[layer]);
  return moved;
}

}  // namespace

Loads moving_average(const std::vector<Loads>& steps, double newest_weight) {
  Loads average = steps.front();
  for (std::size_t step = 1; step < steps.size(); ++step) average_in(average, steps[step], newest_weight);
  return average;
}

std::vector<Placement> place_layers(const Loads& loads, const PlacementShape& shape) {
  std::vector<Placement> placements;
  placements.reserve(loads.size());
  for (const LayerLoads& layer : loads) placements.push_back(place_experts(layer, shape));
  return placements;
}

Imbalance gpu_imbalance(const std::vector<Placement>& placements, const Loads& loads) {
  Imbalance over_layers;
  for (std::size_t layer = 0; layer < loads.size(); ++layer) {
    const double here = imbalance(gpu_loads(placements[layer], loads[layer]));
    over_layers.worst = std::max(over_layers.worst, here);
    over_layers.mean += here / static_cast<double>(loads.size());
  }
  return over_layers;
}

std::vector<BalancedStep> follow_loads(const std::vector<Loads>& steps, const PlacementShape& shape,
                                       const RebalancePolicy& policy) {
  MOELINE_CHECK(policy.every_steps > 0, std::to_string(policy.every_steps));
  const std::vector<Placement> before(steps.front().size(), in_order(shape.experts, shape.gpus, shape.nodes));
  const std::vector<Placement> fixed = place_layers(steps.front(), shape);
  std::vector<Placement> current = fixed;
  Loads average = steps.front();
  std::vector<BalancedStep> balanced;
  for (std::size_t step = 1; step < steps.size(); ++step) {
    BalancedStep now;
    if ((step - 1) % static_cast<std::size_t>(policy.every_steps) == 0) {
      std::vector<Placement> next = place_layers(average, shape);
      now.moved_copies = moved_copies(current, next);
      current = std::move(next);
    }
    now.before = gpu_imbalance(before, steps[step]);
    now.fixed = gpu_imbalance(fixed, steps[step]);
    now.rebalanced = gpu_imbalance(current, steps[step]);
    balanced.push_back(now);
    average_in(average, steps[step], policy.newest_weight);
  }
  return balanced;
}

}  // namespace moeline
