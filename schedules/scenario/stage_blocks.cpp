#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {

std::vector<Block> training_blocks(const Scenario& scenario, const Architecture& model) {
  if (!scenario.whole_model) return main_layers_alone(model, scenario.layers);
  return blocks_of(model, scenario.training.mtp ? model.num_nextn_predict_layers : 0);
}

std::vector<StageBlocks> units_of(const std::vector<Block>& blocks) {
  std::vector<StageBlocks> units;
  bool goes_on = false;
  for (const Block& block : blocks) {
    if (!goes_on) units.emplace_back();
    units.back().push_back(block);
    goes_on = block.kind == BlockKind::embedding || block.kind == BlockKind::mtp;
  }
  return units;
}

int stage_count(const Scenario& scenario) {
  const int per_rank = scenario.kind().pipeline->stages_per_rank;
  return scenario.parallelism.pp * (per_rank > 0 ? per_rank : scenario.parallelism.virtual_pp);
}

}  // namespace moeline
