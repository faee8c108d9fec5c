#include "experiments/run/least_memory.hpp"

#include <algorithm>

#include "experiments/run/step_memory.hpp"
#include "moe/training_memory.hpp"
#include "schedules/pipeline/pipeline.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

// Passes through a stage whose activations a rank keeps at one time, the most of all ranks.
int most_kept(const Scenario& scenario) {
  int most = 0;
  for (const RankSlots& slots : pipeline_slots(scenario)) {
    int kept = 0;
    for (const Slot& slot : slots) {
      if (has_forward(slot.kind)) most = std::max(most, ++kept);
      if (has_backward(slot.kind)) --kept;
    }
  }
  return most;
}

}  // namespace

double least_memory_bytes(const Setup& setup) {
  constexpr double kUnequalStages = 0.9;
  const Scenario& s = setup.scenario;
  const std::vector<Block> blocks = training_blocks(s, setup.model);
  const std::vector<int>& seq_lens = as_train(s.workload).seq_lens;
  const auto shortest = static_cast<int>(std::min_element(seq_lens.begin(), seq_lens.end()) - seq_lens.begin());
  double saved = 0;
  for (const Block& block : blocks) {
    if (!is_layer(block.kind)) continue;
    const LayerWork work = setup.block_work(true, block, 0, shortest);
    saved += saved_bytes(work) - offloaded_bytes(work);
  }
  const int copies = s.kind().pipeline->two_directions ? 2 : 1;
  const StageParameters all = stage_parameters(setup.model, blocks, stage_split(s));
  StepMemory kept = lasting_memory(setup, all, copies);
  if (s.training.offload_optimizer) kept.optimizer = 0;
  const double lasting = copies * kept.total() / s.parallelism.pp;
  return kUnequalStages * (lasting + most_kept(s) * saved / stage_count(s));
}

}  // namespace moeline
