#include "experiments/memory/lasting_memory.hpp"

#include <algorithm>

#include "schedules/lowering/prepared_phases.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "schedules/pipeline/replicas.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

struct Kept {
  double replicated = 0, experts = 0;
  [[nodiscard]] double all() const { return replicated + experts; }
};

// A rank's part, where its replicas split it.
Kept kept_of(const Setup& setup, double replicated, double experts, int copies, bool split) {
  if (!split) return {replicated, experts};
  return {replicated / replicas_of_stage(setup, copies).ranks, experts / replicas_of_experts(setup, copies).ranks};
}

}  // namespace

StepMemory lasting_memory(const Setup& setup, const StageParameters& own, int copies,
                          const std::vector<StageParameters>& neighbours) {
  const TrainingChoices& choices = setup.scenario.training;
  const int replicas = replicas_of_stage(setup, copies).ranks,
            expert_replicas = replicas_of_experts(setup, copies).ranks;
  const auto kept = [&](double replicated, double experts, bool split) {
    return kept_of(setup, replicated, experts, copies, split).all();
  };
  const auto passing = [&](double StageParameters::*replicated, double StageParameters::*experts, bool split) {
    double most = kept(own.*replicated, own.*experts, split);
    if (!split) return most;
    for (const StageParameters& whole : neighbours) {
      most = std::max(most, std::min(own.*replicated, own.*replicated / replicas + whole.*replicated) +
                                std::min(own.*experts, own.*experts / expert_replicas + whole.*experts));
    }
    return most;
  };
  StepMemory memory;
  memory.weights =
      passing(&StageParameters::replicated_bytes, &StageParameters::experts_bytes, choices.splits_parameters());
  memory.gradients = gradient_bytes(choices) *
                     passing(&StageParameters::replicated, &StageParameters::experts, choices.splits_gradients());
  memory.optimizer =
      optimizer_bytes(choices, setup.model) * kept(own.replicated, own.experts, choices.splits_optimizer());
  return memory;
}

double update_memory(const Setup& setup, const StageParameters& own, int copies) {
  const TrainingChoices& choices = setup.scenario.training;
  const Kept kept = kept_of(setup, own.replicated, own.experts, copies, choices.splits_optimizer());
  return update_bytes(choices) * std::max(kept.replicated, kept.experts);
}

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
