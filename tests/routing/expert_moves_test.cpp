// What a new placement of experts sends: nothing where nothing changes, each copy once, inside nodes where it can.
#include "routing/rebalance.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "routing/expert_loads.hpp"

TEST_SUITE("routing/expert_moves") {

using namespace moeline;

namespace {

// Four GPUs of a slot or two each, two in a node.
Placement placed(std::vector<int> experts) { return {.expert_of_slot = std::move(experts), .gpus = 4, .nodes = 2}; }

}  // namespace

TEST_CASE("the same places send nothing") {
  const ExpertMoves moves = expert_moves({placed({0, 1, 2, 3})}, {placed({0, 1, 2, 3})});
  CHECK(moves.all == 0);
  CHECK(moves.busiest_nic == 0);
  CHECK(moves.busiest_nvlink_port == 0);
}

TEST_CASE("experts come over NVLink from their own node, and over NICs from another") {
  const ExpertMoves near = expert_moves({placed({0, 1, 2, 3})}, {placed({1, 0, 3, 2})});
  CHECK(near.all == 4);
  CHECK(near.busiest_nic == 0);
  CHECK(near.busiest_nvlink_port == 1);
  const ExpertMoves far = expert_moves({placed({0, 1, 2, 3})}, {placed({2, 3, 0, 1})});
  CHECK(far.all == 4);
  CHECK(far.busiest_nic == 1);
  CHECK(far.busiest_nvlink_port == 0);
}

TEST_CASE("of several that have an expert, all send it: the busiest has as little as can be") {
  // Expert 0 on both GPUs of the first node, wanted by both of the second.
  const ExpertMoves shared = expert_moves({placed({0, 0, 1, 2})}, {placed({1, 2, 0, 0})});
  CHECK(shared.busiest_nic == 1);
  // One GPU alone has it: it sends twice.
  const ExpertMoves alone = expert_moves({placed({0, 3, 1, 2})}, {placed({3, 1, 0, 0})});
  CHECK(alone.busiest_nic == 2);
}

TEST_CASE("as many copies move as a rebalancing counts, and layers add up") {
  const PlacementShape shape{.experts = 64, .replicas = 80, .groups = 1, .nodes = 2, .gpus = 16};
  const auto loads = [](unsigned seed) {
    return expert_loads({.distribution = LoadDistribution::power_law, .alpha = 0.6, .seed = seed, .file = {}}, 3, 64);
  };
  const std::vector<Placement> before = place_layers(loads(1), shape), after = place_layers(loads(2), shape);
  int copies = 0;
  for (std::size_t layer = 0; layer < before.size(); ++layer) copies += moved_copies(before[layer], after[layer]);
  const ExpertMoves moves = expert_moves(before, after);
  CHECK(moves.all == copies);
  CHECK(16 * moves.busiest_nic + 16 * moves.busiest_nvlink_port >= copies);
  CHECK(moves.busiest_nic < copies / 4);
}

}  // TEST_SUITE("routing/expert_moves")
