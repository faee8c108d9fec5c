#include "schedules/pipeline/split_blocks.hpp"

#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/training_memory.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {

SplitBlocks::Kernels& SplitBlocks::kernels_of(const Block& block) {
  const Setup& setup = program_.setup();
  const StageBlocks alone = {block};
  const StageParameters all = stage_parameters(setup.model, alone, stage_split(setup.scenario));
  const auto [found, is_new] = kernels_.try_emplace({all.replicated, all.experts});
  if (!is_new) return found->second;
  const int copies = setup.scenario.kind().pipeline->two_directions ? 2 : 1;  // of a stage, on ranks of the pipeline
  for (const SharedParameters& shared : shared_parameters(setup, all, copies)) {
    if (shared.replicas.ranks == 1 || shared.parameters == 0) continue;
    const auto prepared = [&](const char* name, const char* module, const Operator& op) {
      return &program_.prepare(name, {kernels::in(module, op)}, {});
    };
    const double gradients = shared.parameters * gradient_bytes(setup.scenario.training);
    found->second.gathers.push_back(
        prepared(kGather, module_names::kGatherWeights, all_gather(shared.gathered_bytes, shared.replicas)));
    found->second.reductions.push_back(
        prepared(kReduction, module_names::kReduceGradients, reduce_scatter(gradients, shared.replicas)));
  }
  return found->second;
}

std::vector<TaskId> SplitBlocks::gather(RankProgram& rank, const Block& block) {
  const auto last = last_.find(rank.rank());
  const bool is_first = last == last_.end();
  const bool is_there = !is_first && block.kind == last->second.block.kind && block.layer == last->second.block.layer;
  std::vector<TaskId> ends;
  if (is_there) return ends;
  for (PreparedPhase* phase : kernels_of(block).gathers) {
    const PhaseTasks tasks = rank.append(*phase, {block.layer, 0, StreamName::parameters});
    if (!is_first) program_.graph().start_after_start(last->second.start, tasks.first);
    ends.push_back(tasks.last);
  }
  return ends;
}

void SplitBlocks::note(const RankProgram& rank, const Block& block, TaskId first) {
  last_.insert_or_assign(rank.rank(), Ran{block, first});
}

TaskId SplitBlocks::reduce(RankProgram& rank, const Block& block, TaskId computed) {
  TaskId end = computed;
  for (PreparedPhase* phase : kernels_of(block).reductions) {
    const PhaseTasks tasks = rank.append(*phase, {block.layer, 0, StreamName::collectives});
    program_.graph().start_after_end(computed, tasks.first);
    end = tasks.last;
  }
  Reductions& reductions = reductions_[rank.rank()];
  reductions = {.last = end, .before_last = reductions.last};
  return end;
}

TaskId SplitBlocks::room_for_gradients(const RankProgram& rank) const {
  const auto found = reductions_.find(rank.rank());
  return found == reductions_.end() ? kNoTask : found->second.before_last;
}

}  // namespace moeline
