#include "schedules/pipeline/stages.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace moeline {
namespace {

// Of all splits of units over stages, none with more of them than it must have, the one with the least total: `join`
// adds the cost of a stage, the sum of its units', to the total of those before it. With the total come the first units
// of all stages.
template <class Join>
std::pair<double, std::vector<std::size_t>> least_split(const std::vector<double>& costs, int count, Join join) {
  const std::size_t most = (costs.size() + static_cast<std::size_t>(count) - 1) / static_cast<std::size_t>(count);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const std::size_t n = costs.size();
  const auto stages = static_cast<std::size_t>(count);
  std::vector<std::vector<double>> least(stages + 1, std::vector<double>(n + 1, kNever));  // by stages and units
  std::vector<std::vector<std::size_t>> first(stages + 1, std::vector<std::size_t>(n + 1, 0));
  least[0][0] = 0;
  for (std::size_t stage = 1; stage <= stages; ++stage) {
    for (std::size_t end = stage; end <= n; ++end) {
      double cost = 0;
      for (std::size_t begin = end; begin-- > std::max(stage - 1, end - std::min(end, most));) {
        cost += costs[begin];
        const double total = join(least[stage - 1][begin], cost);
        if (total >= least[stage][end]) continue;
        least[stage][end] = total;
        first[stage][end] = begin;
      }
    }
  }
  std::vector<std::size_t> begins(stages);
  std::size_t end = n;
  for (std::size_t stage = stages; stage > 0; --stage) end = begins[stage - 1] = first[stage][end];
  return {least[stages][n], begins};
}

double compute_us(const PreparedPhase& phase) {
  double sum = 0;
  for (const PreparedKernel& kernel : phase.kernels) sum += kernel.computes ? to_us(kernel.task.solo) : 0;
  return sum;
}

double cost_us(TrainingPhases& phases, const StageBlocks& unit) {
  double sum = 0;
  for (const Block& block : unit) {
    for (const auto* names : {&phases.forward(block.kind), &phases.backward(block.kind), &weight_phases(block.kind)}) {
      for (const std::string& name : *names) sum += compute_us(phases.at(name, block, 0));
    }
  }
  return sum;
}

}  // namespace

std::vector<StageBlocks> balanced_stages(const std::vector<StageBlocks>& units, const std::vector<double>& costs,
                                         int count) {
  MOELINE_CHECK(count >= 1 && static_cast<std::size_t>(count) <= units.size(), std::to_string(count));
  const auto costliest = [](double before, double cost) { return std::max(before, cost); };
  const double cap = least_split(costs, count, costliest).first;
  const auto squares = [cap](double before, double cost) {
    return cost > cap ? std::numeric_limits<double>::infinity() : before + cost * cost;
  };
  const std::vector<std::size_t> begins = least_split(costs, count, squares).second;
  std::vector<StageBlocks> stages(begins.size());
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::size_t end = stage + 1 < begins.size() ? begins[stage + 1] : units.size();
    for (std::size_t unit = begins[stage]; unit < end; ++unit) {
      stages[stage].insert(stages[stage].end(), units[unit].begin(), units[unit].end());
    }
  }
  return stages;
}

std::vector<StageBlocks> stages_of(TrainingPhases& phases) {
  const Scenario& s = phases.setup().scenario;
  const std::vector<Block> blocks = training_blocks(s, phases.setup().model);
  if (!s.stage_layers.empty()) return given_stages(blocks, s.stage_layers);
  const std::vector<StageBlocks> units = units_of(blocks, stage_count(s));
  std::vector<double> costs;
  for (const StageBlocks& unit : units) costs.push_back(cost_us(phases, unit));
  return balanced_stages(units, costs, stage_count(s));
}

}  // namespace moeline
