#include "experiments/run/step_memory.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "moe/memory.hpp"
#include "moe/training_memory.hpp"
#include "schedules/lowering/prepared_phases.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "schedules/pipeline/replicas.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

// Of one stage and micro-batch.
struct StageMemory {
  double saved = 0;
  double pending = 0;  // between B and W, where they are apart
  double forward_workspace = 0, backward_workspace = 0;
};

class RankMemory {
 public:
  RankMemory(const Setup& setup, const StepLayout& layout) : setup_(setup), layout_(layout) {
    for (const ProgramSlot& slot : layout.slots) {
      for (const int stage : stages_in(slot.slot)) ++copies_[stage][slot.rank];
    }
  }

  void add(std::size_t rank, const std::vector<std::size_t>& slots, StepReport& report) {
    RankStep& step = report.ranks[rank];
    step.peak = lasting(rank);
    const Offloaded offloaded = offloaded_of(rank, step.peak.optimizer, report);
    step.host = offloaded.host;
    step.memory = changes(slots, offloaded, report);
    if (offloaded.states.empty()) {
      for (MemoryChange& change : step.memory) change.optimizer = step.peak.optimizer;
    }
    const auto fuller = [](const MemoryChange& a, const MemoryChange& b) { return a.total() < b.total(); };
    const auto most = std::max_element(step.memory.begin(), step.memory.end(), fuller);
    for (const std::size_t slot : slots) {
      step.peak.workspace = std::max(step.peak.workspace, workspace(layout_.slots[slot].slot));
    }
    for (const MemoryChange& change : step.memory) step.most_passes = std::max(step.most_passes, change.passes);
    if (most == step.memory.end()) return;
    step.peak.activations = most->activations;
    step.peak.optimizer = most->optimizer;
    step.peak_at = most->at;
  }

 private:
  [[nodiscard]] StageMemory memory_of(const std::vector<Block>& blocks, int micro_batch) const {
    StageMemory memory;
    for (const Block& block : blocks) {
      const LayerWork work = setup_.block_work(true, block, 0, micro_batch);
      memory.saved += saved_bytes(work);
      memory.pending += pending_weight_bytes(work);
      memory.forward_workspace = std::max(memory.forward_workspace, forward_workspace_bytes(work));
      memory.backward_workspace = std::max(memory.backward_workspace, backward_workspace_bytes(work));
    }
    return memory;
  }

  static std::vector<int> stages_in(const Slot& slot) {
    std::vector<int> stages;
    if (has_forward(slot.kind)) stages.push_back(slot.forward.stage);
    if (slot.kind != SlotKind::forward) stages.push_back(slot.backward.stage);
    return stages;
  }

  [[nodiscard]] const StageMemory& of(const Pass& pass) const {
    const std::pair key{pass.stage, seq_len_of(as_train(setup_.scenario.workload), pass.micro_batch)};
    const auto found = stages_.find(key);
    if (found != stages_.end()) return found->second;
    const StageBlocks& blocks = layout_.stages[static_cast<std::size_t>(pass.stage)];
    return stages_.emplace(key, memory_of(blocks, pass.micro_batch)).first->second;
  }

  [[nodiscard]] double workspace(const Slot& slot) const {
    double bytes = 0;
    if (has_forward(slot.kind)) bytes += of(slot.forward).forward_workspace;
    if (slot.kind != SlotKind::forward) bytes += of(slot.backward).backward_workspace;
    return bytes;
  }

  // What leaves the rank's memory for a while.
  struct Offloaded {
    std::map<std::pair<int, int>, double> layers;  // bytes by micro-batch and layer
    std::vector<MemoryChange> activations, states;
    double host = 0;
  };

  [[nodiscard]] Offloaded offloaded_of(std::size_t rank, double states, const StepReport& report) const {
    Offloaded offloaded;
    std::vector<MemoryChange> waiting;
    for (const OffloadedStay& stay : report.stays) {
      if (stay.what.rank != rank) continue;
      if (!stay.what.block) {
        offloaded.states.push_back({.at = stay.from, .optimizer = states});
        offloaded.states.push_back({.at = stay.to, .optimizer = -states});
        continue;
      }
      const double bytes = offloaded_bytes(setup_.block_work(true, *stay.what.block, 0, stay.what.micro_batch));
      offloaded.layers[{stay.what.micro_batch, stay.what.block->layer}] = bytes;
      offloaded.activations.push_back({.at = stay.from, .activations = bytes});
      offloaded.activations.push_back({.at = stay.to, .activations = -bytes});
      const bool returns = stay.what.is_back;
      waiting.push_back({.at = returns ? stay.from : stay.to, .activations = returns ? -bytes : bytes});
    }
    accumulate(waiting);
    for (const MemoryChange& change : waiting) offloaded.host = std::max(offloaded.host, change.activations);
    if (!offloaded.states.empty()) offloaded.host += states;
    return offloaded;
  }

  // Of a pass through a stage, what stays on the GPU.
  [[nodiscard]] double kept(const Pass& pass, const Offloaded& offloaded) const {
    double bytes = of(pass).saved;
    for (const Block& block : layout_.stages[static_cast<std::size_t>(pass.stage)]) {
      const auto away =
          is_layer(block.kind) ? offloaded.layers.find({pass.micro_batch, block.layer}) : offloaded.layers.end();
      if (away != offloaded.layers.end()) bytes -= away->second;
    }
    return bytes;
  }

  // In the order of time, from changes to what is there. What is freed at the instant at which something else begins
  // makes room for it.
  static void accumulate(std::vector<MemoryChange>& changes) {
    std::stable_sort(changes.begin(), changes.end(), [](const MemoryChange& a, const MemoryChange& b) {
      return std::tuple(a.at, a.passes, a.total()) < std::tuple(b.at, b.passes, b.total());
    });
    for (std::size_t i = 1; i < changes.size(); ++i) {
      changes[i].activations += changes[i - 1].activations;
      changes[i].optimizer += changes[i - 1].optimizer;
      changes[i].passes += changes[i - 1].passes;
    }
  }

  [[nodiscard]] std::vector<MemoryChange> changes(const std::vector<std::size_t>& slots, const Offloaded& offloaded,
                                                  const StepReport& report) const {
    std::vector<MemoryChange> changes = offloaded.activations;
    changes.insert(changes.end(), offloaded.states.begin(), offloaded.states.end());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const PhaseTimes& row = report.slots[slots[i]];
      const Slot& slot = layout_.slots[slots[i]].slot;
      // Layer by layer; where slots overlap at their ends, hardly any of it is left when the next one begins.
      const Time next = i + 1 < slots.size() ? report.slots[slots[i + 1]].start : Time::max();
      const Time end = std::min(row.end, next);
      const auto add = [&](Time at, double bytes, int passes) {
        changes.push_back({.at = at, .activations = bytes, .passes = passes});
      };
      if (has_forward(slot.kind)) add(row.start, kept(slot.forward, offloaded), 1);
      if (slot.kind == SlotKind::forward) continue;
      const double saved = kept(slot.backward, offloaded), pending = of(slot.backward).pending;
      if (slot.kind == SlotKind::backward_input) add(end, pending - saved, 0);
      if (slot.kind == SlotKind::weight) add(end, -pending, -1);
      if (has_backward(slot.kind) && has_weight(slot.kind)) add(end, -saved, -1);
    }
    accumulate(changes);
    return changes;
  }

  [[nodiscard]] StepMemory lasting(std::size_t rank) const {
    std::vector<StageBlocks> stages;
    int copies = 1;
    for (const auto& [stage, holders] : copies_) {
      if (!holders.contains(static_cast<std::uint32_t>(rank))) continue;
      copies = static_cast<int>(holders.size());
      stages.push_back(layout_.stages[static_cast<std::size_t>(stage)]);
    }
    StageBlocks held;
    for (const StageBlocks& stage : stages) held.insert(held.end(), stage.begin(), stage.end());
    StepMemory memory = lasting_memory(setup_, parameters_of(held), copies, neighbours_of(stages));
    if (setup_.scenario.comm.mode == CommMode::normal) {
      memory.communication = normal_buffer_bytes(setup_.model, setup_.scenario.parallelism.ep, transfer_sms(setup_));
    }
    return memory;
  }

  [[nodiscard]] StageParameters parameters_of(const StageBlocks& blocks) const {
    return stage_parameters(setup_.model, blocks, stage_split(setup_.scenario));
  }

  // Two blocks that follow each other: in a stage, or where one pass ends and the next begins.
  [[nodiscard]] std::vector<StageParameters> neighbours_of(const std::vector<StageBlocks>& stages) const {
    std::vector<StageParameters> neighbours;
    StageBlocks ends;
    for (const StageBlocks& stage : stages) {
      if (stage.empty()) continue;
      for (std::size_t i = 1; i < stage.size(); ++i) neighbours.push_back(parameters_of({stage[i - 1], stage[i]}));
      for (const Block& end : {stage.front(), stage.back()}) {
        neighbours.push_back(parameters_of({end}));
        for (const Block& other : ends) neighbours.push_back(parameters_of({end, other}));
      }
      ends.insert(ends.end(), {stage.front(), stage.back()});
    }
    return neighbours;
  }

  const Setup& setup_;
  const StepLayout& layout_;
  mutable std::map<std::pair<int, int>, StageMemory> stages_;  // by stage and length of a sequence
  std::map<int, std::map<std::uint32_t, int>> copies_;         // of each stage, by rank
};

}  // namespace

StepMemory lasting_memory(const Setup& setup, const StageParameters& own, int copies,
                          const std::vector<StageParameters>& neighbours) {
  const TrainingChoices& choices = setup.scenario.training;
  const int replicas = replicas_of_stage(setup, copies).ranks,
            expert_replicas = replicas_of_experts(setup, copies).ranks;
  const auto kept = [&](double replicated, double experts, bool split) {
    return split ? replicated / replicas + experts / expert_replicas : replicated + experts;
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
  memory.optimizer = optimizer_bytes(choices) * kept(own.replicated, own.experts, choices.splits_optimizer());
  return memory;
}

void add_memory(const Setup& setup, StepReport& report) {
  const StepLayout& layout = report.layout;
  RankMemory memory(setup, layout);
  std::vector<std::vector<std::size_t>> slots(report.ranks.size());
  for (std::size_t i = 0; i < layout.slots.size(); ++i) slots[layout.slots[i].rank].push_back(i);
  for (std::size_t rank = 0; rank < slots.size(); ++rank) memory.add(rank, slots[rank], report);
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
