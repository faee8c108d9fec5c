#include "schedules/scenario/stage_blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedules/scenario/stack_habits.hpp"

namespace moeline {

std::vector<Block> training_blocks(const Scenario& scenario, const Architecture& model) {
  if (!scenario.whole_model) return main_layers_alone(model, scenario.layers);
  return blocks_of(model, scenario.training.mtp ? model.num_nextn_predict_layers : 0);
}

std::vector<StageBlocks> units_of(const std::vector<Block>& blocks, int stages) {
  std::vector<StageBlocks> units;
  bool goes_on = false;
  for (const Block& block : blocks) {
    if (!goes_on) units.emplace_back();
    units.back().push_back(block);
    goes_on = block.kind == BlockKind::embedding || block.kind == BlockKind::mtp;
  }
  const bool embeds = units.front().front().kind == BlockKind::embedding;
  if (embeds && static_cast<int>(units.size()) < stages) {
    units.insert(units.begin(), {units.front().front()});
    units[1].erase(units[1].begin());
  }
  return units;
}

int stage_count(const Scenario& scenario) {
  const int per_rank = scenario.kind().pipeline->stages_per_rank;
  return scenario.parallelism.pp * (per_rank > 0 ? per_rank : scenario.parallelism.virtual_pp);
}

std::vector<StageBlocks> given_stages(const std::vector<Block>& blocks, const std::vector<int>& layers) {
  std::vector<StageBlocks> stages(layers.size());
  std::size_t stage = 0;
  int left = layers.front();
  for (const Block& block : blocks) {
    if (block.kind == BlockKind::head || block.kind == BlockKind::mtp) stage = stages.size() - 1;
    const bool decoder = is_layer(block.kind) && (stages[stage].empty() || stages[stage].back().kind != BlockKind::mtp);
    if (decoder && left == 0 && stage + 1 < stages.size()) left = layers[++stage];
    left -= decoder ? 1 : 0;
    stages[stage].push_back(block);
  }
  return stages;
}

std::vector<Block> inference_blocks(const Setup& setup) {
  if (!setup.scenario.whole_model) return main_layers_alone(setup.model, setup.simulated_layers());
  Architecture simulated = setup.model;
  simulated.num_hidden_layers -= setup.fold.left_out;
  return blocks_of(simulated, setup.drafted_tokens());
}

std::vector<StageBlocks> inference_stages(const Setup& setup) {
  return given_stages(inference_blocks(setup), setup.scenario.stage_layers);
}

std::vector<int> even_stages(const Setup& setup, int layers) {
  const int stages = setup.scenario.parallelism.pp;
  std::vector<int> counts(static_cast<std::size_t>(stages), layers / stages);
  const int longer = layers % stages, first = habits::first_longer_stage(setup, stages, longer);
  for (int i = 0; i < longer; ++i) ++counts[static_cast<std::size_t>(first + i)];
  return counts;
}

std::string describe(const StageBlocks& blocks) {
  std::vector<std::string> parts;
  for (auto block = blocks.begin(); block != blocks.end();) {
    const auto next = std::find_if(block, blocks.end(), [&](const Block& other) { return other.kind != block->kind; });
    parts.push_back(is_layer(block->kind) ? fmt::format("{} {}", next - block, name_of(block->kind))
                                          : name_of(block->kind));
    block = next;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace moeline
