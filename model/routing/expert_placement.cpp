#include "routing/expert_placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/error.hpp"

namespace moeline {
namespace {

using Items = std::vector<std::size_t>;

// Items on bins of equally many: the heaviest first, onto the lightest bin that is not full. Where a bin takes one
// item there is nothing to balance, and none moves.
std::vector<Items> pack(const std::vector<double>& weights, std::size_t bins) {
  const std::size_t room = weights.size() / bins;
  std::vector<Items> packed(bins);
  if (room == 1) {
    for (std::size_t bin = 0; bin < bins; ++bin) packed[bin] = {bin};
    return packed;
  }
  Items heaviest_first(weights.size());
  std::iota(heaviest_first.begin(), heaviest_first.end(), 0U);
  std::stable_sort(heaviest_first.begin(), heaviest_first.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  std::vector<double> filled(bins);
  for (const std::size_t item : heaviest_first) {
    std::size_t lightest = bins;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      if (packed[bin].size() < room && (lightest == bins || filled[bin] < filled[lightest])) lightest = bin;
    }
    packed[lightest].push_back(item);
    filled[lightest] += weights[item];
  }
  return packed;
}

// The item of each slot: every item once, in order, then each further slot goes to the item with the most load per
// copy.
Items replicate(const std::vector<double>& loads, std::size_t slots) {
  Items item_of_slot(loads.size());
  std::iota(item_of_slot.begin(), item_of_slot.end(), 0U);
  std::vector<double> copies(loads.size(), 1);
  while (item_of_slot.size() < slots) {
    std::size_t busiest = 0;
    for (std::size_t item = 1; item < loads.size(); ++item) {
      if (loads[item] / copies[item] > loads[busiest] / copies[busiest]) busiest = item;
    }
    item_of_slot.push_back(busiest);
    copies[busiest] += 1;
  }
  return item_of_slot;
}

std::vector<double> chosen(const std::vector<double>& values, const Items& items) {
  std::vector<double> taken;
  taken.reserve(items.size());
  for (const std::size_t item : items) taken.push_back(values[item]);
  return taken;
}

std::vector<double> load_per_copy(const std::vector<double>& loads, const Items& item_of_slot) {
  std::vector<double> copies(loads.size());
  for (const std::size_t item : item_of_slot) copies[item] += 1;
  std::vector<double> per_slot;
  per_slot.reserve(item_of_slot.size());
  for (const std::size_t item : item_of_slot) per_slot.push_back(loads[item] / copies[item]);
  return per_slot;
}

// The experts of each node: whole groups, as packed.
std::vector<Items> experts_of_nodes(const std::vector<double>& loads, std::size_t groups, std::size_t nodes) {
  const std::size_t group_size = loads.size() / groups;
  std::vector<double> group_loads(groups);
  for (std::size_t expert = 0; expert < loads.size(); ++expert) group_loads[expert / group_size] += loads[expert];
  std::vector<Items> experts;
  for (const Items& packed : pack(group_loads, nodes)) {
    experts.emplace_back();
    for (const std::size_t group : packed) {
      for (std::size_t i = 0; i < group_size; ++i) experts.back().push_back(group * group_size + i);
    }
  }
  return experts;
}

void place_on_node(const std::vector<double>& loads, const Items& experts, std::size_t slots, std::size_t gpus,
                   std::vector<int>& expert_of_slot) {
  const std::vector<double> own = chosen(loads, experts);
  const Items copies = replicate(own, slots);
  for (const Items& gpu : pack(load_per_copy(own, copies), gpus)) {
    for (const std::size_t slot : gpu) expert_of_slot.push_back(static_cast<int>(experts[copies[slot]]));
  }
}

std::string does_not_divide(const char* what, int divisor, const char* of, int number) {
  return fmt::format("{} must divide {}: {} does not divide {}", what, of, divisor, number);
}

}  // namespace

std::string broken_rule(const PlacementShape& s) {
  MOELINE_CHECK(s.experts > 0 && s.groups > 0 && s.nodes > 0 && s.gpus > 0, fmt::format("{} experts", s.experts));
  if (s.experts % s.groups != 0) return does_not_divide("groups", s.groups, "the experts", s.experts);
  if (s.gpus % s.nodes != 0) return does_not_divide("nodes", s.nodes, "gpus", s.gpus);
  if (s.replicas % s.gpus != 0) return does_not_divide("gpus", s.gpus, "replicas", s.replicas);
  if (s.replicas < s.experts) {
    return fmt::format("replicas must be at least the experts: {} are fewer than {}", s.replicas, s.experts);
  }
  return "";
}

int Placement::gpu_of(int slot) const {
  return static_cast<int>(static_cast<std::int64_t>(slot) * gpus / static_cast<std::int64_t>(slots()));
}

Placement in_order(int experts, int gpus, int nodes) { return in_order({experts, experts, 1, nodes, gpus}); }

Placement in_order(const PlacementShape& shape) {
  Placement placement{{}, shape.gpus, shape.nodes};
  for (int slot = 0; slot < shape.replicas; ++slot) placement.expert_of_slot.push_back(slot % shape.experts);
  return placement;
}

Placement place_experts(const std::vector<double>& loads, const PlacementShape& shape) {
  MOELINE_CHECK(broken_rule(shape).empty(), broken_rule(shape));
  MOELINE_CHECK(loads.size() == static_cast<std::size_t>(shape.experts), fmt::format("{} loads", loads.size()));
  const auto nodes = static_cast<std::size_t>(shape.hierarchical() ? shape.nodes : 1);
  const auto groups = static_cast<std::size_t>(shape.hierarchical() ? shape.groups : 1);
  const std::size_t slots = static_cast<std::size_t>(shape.replicas) / nodes;
  const std::size_t gpus = static_cast<std::size_t>(shape.gpus) / nodes;
  Placement placement{{}, shape.gpus, shape.nodes};
  for (const Items& experts : experts_of_nodes(loads, groups, nodes)) {
    place_on_node(loads, experts, slots, gpus, placement.expert_of_slot);
  }
  return placement;
}

std::vector<int> copies_of(const Placement& placement, int experts) {
  std::vector<int> copies(static_cast<std::size_t>(experts));
  for (const int expert : placement.expert_of_slot) ++copies[static_cast<std::size_t>(expert)];
  return copies;
}

std::vector<double> gpu_loads(const Placement& placement, const std::vector<double>& loads) {
  const std::vector<int> copies = copies_of(placement, static_cast<int>(loads.size()));
  std::vector<double> sums(static_cast<std::size_t>(placement.gpus));
  for (int slot = 0; slot < placement.slots(); ++slot) {
    const auto expert = static_cast<std::size_t>(placement.expert_of_slot[static_cast<std::size_t>(slot)]);
    sums[static_cast<std::size_t>(placement.gpu_of(slot))] += loads[expert] / copies[expert];
  }
  return sums;
}

std::vector<double> node_loads(const Placement& placement, const std::vector<double>& loads) {
  const std::vector<double> of_gpus = gpu_loads(placement, loads);
  const std::size_t node_size = of_gpus.size() / static_cast<std::size_t>(placement.nodes);
  std::vector<double> sums(static_cast<std::size_t>(placement.nodes));
  for (std::size_t gpu = 0; gpu < of_gpus.size(); ++gpu) sums[gpu / node_size] += of_gpus[gpu];
  return sums;
}

double imbalance(const std::vector<double>& loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  MOELINE_CHECK(sum > 0, std::to_string(sum));
  return *std::max_element(loads.begin(), loads.end()) * static_cast<double>(loads.size()) / sum;
}

int moved_copies(const Placement& before, const Placement& after) {
  MOELINE_CHECK(before.gpus == after.gpus, fmt::format("{} and {} GPUs", before.gpus, after.gpus));
  const auto on_gpus = [](const Placement& placement) {
    std::vector<std::vector<int>> experts(static_cast<std::size_t>(placement.gpus));
    for (int slot = 0; slot < placement.slots(); ++slot) {
      experts[static_cast<std::size_t>(placement.gpu_of(slot))].push_back(
          placement.expert_of_slot[static_cast<std::size_t>(slot)]);
    }
    for (std::vector<int>& gpu : experts) {  // two copies of an expert on one GPU are sent once
      std::sort(gpu.begin(), gpu.end());
      gpu.erase(std::unique(gpu.begin(), gpu.end()), gpu.end());
    }
    return experts;
  };
  const auto held = on_gpus(before);
  const auto needed = on_gpus(after);
  int moved = 0;
  for (std::size_t gpu = 0; gpu < held.size(); ++gpu) {
    moved += static_cast<int>(std::count_if(needed[gpu].begin(), needed[gpu].end(), [&](int expert) {
      return !std::binary_search(held[gpu].begin(), held[gpu].end(), expert);
    }));
  }
  return moved;
}

}  // namespace moeline
