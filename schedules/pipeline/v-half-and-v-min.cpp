// A block of six passes of a micro-batch on each rank (F, B and W of two chunks in a V) that repeats every six units of
// time, as if F, B and W were equally long. How long it takes from rank to rank says how long activations are kept.
#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "schedules/pipeline/pipelines.hpp"

namespace moeline {
namespace {

constexpr int kPeriod = 6;

// Units from a rank to the next one in the way of the data.
struct Steps {
  int f0, f1, b1, b0;
};
// Chunk 1 takes as long up and down as chunk 0 does down and up, so that every rank keeps equally many. The sum of both
// over twice the period is the share of 1F1B's activations: 2/6 and 3/6.
constexpr Steps kMin = {1, 1, 1, 1};
constexpr Steps kHalf = {1, 2, 1, 2};

// When F of chunk 0 and 1, B of chunk 1 and 0 of the first micro-batch start.
struct Block {
  Steps steps;
  int f1 = 0, b1 = 0, b0 = 0;  ///< on the rank that comes first

  [[nodiscard]] std::array<int, 4> on(int rank, int ranks) const {
    const int behind = ranks - 1 - rank;
    return {steps.f0 * rank, f1 + steps.f1 * behind, b1 + steps.b1 * rank, b0 + steps.b0 * behind};
  }
  // Passes of any two micro-batches do not meet.
  [[nodiscard]] bool repeats(int ranks) const {
    for (int rank = 0; rank < ranks; ++rank) {
      std::set<int> units;
      for (const int start : on(rank, ranks)) units.insert(start % kPeriod);
      if (units.size() < 4) return false;
    }
    return true;
  }
};

// The shortest one that repeats: each pass a little later than its data allow.
Block shortest_block(const Steps& steps, int ranks) {
  Block shortest{.steps = steps, .b0 = std::numeric_limits<int>::max()};
  const int across = ranks - 1;
  for (int late = 0; late < kPeriod * kPeriod * kPeriod; ++late) {
    Block block{.steps = steps};
    block.f1 = steps.f0 * across + 1 + late / (kPeriod * kPeriod);
    block.b1 = block.f1 + steps.f1 * across + 1 + late / kPeriod % kPeriod;
    block.b0 = block.b1 + steps.b1 * across + 1 + late % kPeriod;
    if (block.b0 < shortest.b0 && block.repeats(ranks)) shortest = block;
  }
  MOELINE_CHECK(shortest.b0 < std::numeric_limits<int>::max(), std::to_string(ranks));
  return shortest;
}

enum class What { forward, backward, weight };
struct Pattern {
  int start;
  What what;
  int chunk;
  bool operator<(const Pattern& other) const { return start < other.start; }
};

// W takes the first unit behind its B that the others leave free.
int free_unit(int after, std::set<int>& taken) {
  int start = after + 1;
  while (!taken.insert(start % kPeriod).second) ++start;
  return start;
}

std::vector<Pattern> passes_of(const Block& block, int rank, int ranks) {
  const auto [f0, f1, b1, b0] = block.on(rank, ranks);
  std::set<int> taken = {f0 % kPeriod, f1 % kPeriod, b1 % kPeriod, b0 % kPeriod};
  const int w1 = free_unit(b1, taken);
  const int w0 = free_unit(b0, taken);
  return {{f0, What::forward, 0},  {f1, What::forward, 1}, {b1, What::backward, 1},
          {b0, What::backward, 0}, {w1, What::weight, 1},  {w0, What::weight, 0}};
}

RankSlots repeated(const Steps& steps, int rank, const PipelineShape& shape) {
  std::vector<Pattern> passes;
  for (const Pattern& pass : passes_of(shortest_block(steps, shape.ranks), rank, shape.ranks)) {
    for (int i = 0; i < shape.micro_batches; ++i) passes.push_back({pass.start + kPeriod * i, pass.what, pass.chunk});
  }
  std::sort(passes.begin(), passes.end());
  SlotWriter slots(chunks_in_a_v(rank, shape.ranks));
  for (const Pattern& pass : passes) {
    if (pass.what == What::forward) slots.f(pass.chunk);
    if (pass.what == What::backward) slots.b_input(pass.chunk);
    if (pass.what == What::weight) slots.w();
  }
  return std::move(slots).finish();
}

}  // namespace

RankSlots v_half(int rank, const PipelineShape& shape) { return repeated(kHalf, rank, shape); }
RankSlots v_min(int rank, const PipelineShape& shape) { return repeated(kMin, rank, shape); }

}  // namespace moeline
