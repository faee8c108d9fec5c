#include "schedules/pipeline/optimizer_step.hpp"

#include <array>
#include <map>
#include <utility>

#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/tensor_parallel.hpp"
#include "schedules/pipeline/replicas.hpp"

namespace moeline {
namespace {

using namespace module_names;

StageParameters minus(const StageParameters& a, const StageParameters& b) {
  return {a.replicated - b.replicated, a.experts - b.experts, a.replicated_bytes - b.replicated_bytes,
          a.experts_bytes - b.experts_bytes, a.repeated - b.repeated};
}

class OptimizerStep {
 public:
  OptimizerStep(ProgramDraft& program, std::vector<RankProgram>& ranks,
                const std::vector<std::vector<HeldBlocks>>& held, HostCopies& copies)
      : program_(program), setup_(program.setup()), ranks_(ranks), held_(held), copies_(copies) {
    for (const std::vector<HeldBlocks>& of_rank : held) {
      for (const HeldBlocks& each : of_rank) complete_[{each.stage, each.part}].push_back(each.complete);
    }
    for (std::size_t rank = 0; rank < held.size(); ++rank) shared_.push_back(shared_of(rank));
  }

  void append() {
    const TaskId all = all_reduced();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) reduce(rank, all);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) update(rank, all);
  }

 private:
  // What the rank holds of each part of its stages. A table that several of them need counts with the first.
  std::vector<std::array<SharedParameters, 2>> shared_of(std::size_t rank) const {
    std::vector<std::array<SharedParameters, 2>> shared;
    StageBlocks blocks;
    StageParameters before;
    for (const HeldBlocks& held : held_[rank]) {
      blocks.insert(blocks.end(), held.blocks.begin(), held.blocks.end());
      const StageParameters all = stage_parameters(setup_.model, blocks, stage_split(setup_.scenario));
      const StageParameters own = minus(all, before);
      before = all;
      const auto copies = static_cast<int>(complete_.at({held.stage, held.part}).size());
      shared.push_back(shared_parameters(setup_, own, copies));
    }
    return shared;
  }

  PhaseTasks append_kernel(std::size_t rank, const char* name, const char* module, const Operator& op,
                           StreamName stream, int stage) {
    PreparedPhase& phase = program_.prepare(name, {kernels::in(module, op)}, {});
    // Collectives are appended behind the passes, and launched between them.
    phase.kernels.front().launched_before = stream == StreamName::collectives;
    return ranks_[rank].append(phase, {stage, 0, stream});
  }

  // The point at which every rank has its gradients.
  TaskId all_reduced() {
    TaskGraphDraft& graph = program_.graph();
    Label label = ranks_.front().label({}, StreamName::host, 0);
    label.name = graph.intern("all gradients are reduced");
    label.task_class = graph.add_class("host", Role::host);
    return graph.add({}, label);
  }

  void reduce(std::size_t rank, TaskId all) {
    const TrainingChoices& choices = setup_.scenario.training;
    TaskGraphDraft& graph = program_.graph();
    for (const HeldBlocks& held : held_[rank]) graph.start_after_end(held.complete, all);
    for (std::size_t i = 0; i < held_[rank].size(); ++i) {
      const HeldBlocks& part = held_[rank][i];
      for (const SharedParameters& shared : shared_[rank][i]) {
        if (choices.splits_gradients() || shared.replicas.ranks == 1 || shared.parameters == 0) continue;
        const double bytes = shared.parameters * gradient_bytes(choices);
        PhaseTasks tasks = append_kernel(rank, "reduce-scatter", kReduceGradients,
                                         reduce_scatter(bytes, shared.replicas), StreamName::collectives, part.stage);
        for (const TaskId complete : complete_.at({part.stage, part.part}))
          graph.start_after_end(complete, tasks.first);
        for (const HeldBlocks& held : held_[rank]) {
          if (!choices.overlap_gradients) graph.start_after_end(held.complete, tasks.first);
        }
        if (!choices.splits_optimizer()) {
          tasks = append_kernel(rank, "all-gather", kReduceGradients, all_gather(bytes, shared.replicas),
                                StreamName::collectives, part.stage);
        }
        graph.start_after_end(tasks.last, all);
      }
    }
  }

  // Of what each tensor parallel rank has whole and saw its own tokens with: norms, router, MLA's projections into
  // latents (Megatron-Core, core/distributed/finalize_model_grads.py).
  TaskId sum_repeated(std::size_t rank, TaskId all) {
    const int tp = setup_.scenario.parallelism.tp;
    if (tp == 1) return all;
    StageBlocks blocks;
    for (const HeldBlocks& held : held_[rank]) blocks.insert(blocks.end(), held.blocks.begin(), held.blocks.end());
    const double parameters = stage_parameters(setup_.model, blocks, stage_split(setup_.scenario)).repeated;
    const Replicas group = consecutive(tp, static_cast<int>(setup_.machine.facts.gpus_per_node));
    const Operator sum = all_reduce(parameters * gradient_bytes(setup_.scenario.training), group);
    const PhaseTasks tasks =
        append_kernel(rank, "tensor parallel", kSumRepeated, sum, StreamName::collectives, held_[rank].front().stage);
    program_.graph().start_after_end(all, tasks.first);
    return tasks.last;
  }

  // The norm of the gradients first: a message of every rank to all.
  void update(std::size_t rank, TaskId all) {
    all = sum_repeated(rank, all);
    Operator all_reduce;
    all_reduce.name = "ncclDevKernel_AllReduce";
    all_reduce.family = Family::notify;
    all_reduce.traffic.ranks = static_cast<int>(setup_.scenario.parallelism.world());
    const PhaseTasks norm = append_kernel(rank, "gradient norm", kGradientNorm, all_reduce, StreamName::collectives, 0);
    program_.graph().start_after_end(all, norm.first);

    const TrainingChoices& choices = setup_.scenario.training;
    double bytes = 0, states = 0;
    std::vector<Operator> gathers;
    const bool gathers_weights =
        choices.splits_optimizer() && !choices.splits_parameters() && !choices.overlap_parameters;
    for (const std::array<SharedParameters, 2>& of_stage : shared_[rank]) {
      for (const SharedParameters& shared : of_stage) {
        const double part = choices.splits_optimizer() ? 1.0 / shared.replicas.ranks : 1;
        bytes += part * shared.parameters * gradient_bytes(choices);
        states += part * shared.parameters * optimizer_bytes(choices, setup_.model);
        bytes += part * shared.weight_bytes;
        if (gathers_weights && shared.replicas.ranks > 1 && shared.gathered_bytes > 0) {
          gathers.push_back(all_gather(shared.gathered_bytes, shared.replicas));
        }
      }
    }
    const Operator adam = kernels::memory(Family::streaming, "AdamW", bytes + 2 * states);
    const PhaseTasks optimizer = append_kernel(rank, "optimizer", kUpdate, adam, StreamName::compute, 0);
    program_.graph().start_after_end(norm.last, optimizer.first);
    if (choices.offload_optimizer) program_.graph().start_after_end(move_states(rank, states), optimizer.first);
    for (const Operator& gather : gathers) {
      const PhaseTasks tasks = append_kernel(rank, "all-gather", kGatherWeights, gather, StreamName::collectives, 0);
      program_.graph().start_after_end(optimizer.last, tasks.first);
    }
  }

  TaskId move_states(std::size_t rank, double bytes) {
    std::vector<TaskId> complete;
    for (const HeldBlocks& held : held_[rank]) complete.push_back(held.complete);
    return copies_.move_states(ranks_[rank], bytes, complete);
  }

  ProgramDraft& program_;
  const Setup& setup_;
  std::vector<RankProgram>& ranks_;
  const std::vector<std::vector<HeldBlocks>>& held_;
  HostCopies& copies_;
  std::map<std::pair<int, int>, std::vector<TaskId>> complete_;       // by stage and part, on every rank that holds it
  std::vector<std::vector<std::array<SharedParameters, 2>>> shared_;  // by rank and part that it holds
};

}  // namespace

void append_optimizer_step(ProgramDraft& program, std::vector<RankProgram>& ranks,
                           const std::vector<std::vector<HeldBlocks>>& held, HostCopies& copies) {
  OptimizerStep(program, ranks, held, copies).append();
}

}  // namespace moeline
