#include "experiments/memory/step_memory.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "experiments/memory/lasting_memory.hpp"
#include "schedules/lowering/prepared_phases.hpp"

namespace moeline {
namespace {

class StepAccount {
 public:
  StepAccount(const Setup& setup, const StepLayout& layout, const std::vector<PhaseTimes>& slots,
              const std::vector<OffloadedStay>& stays)
      : setup_(setup), layout_(layout), slots_(slots), stays_(stays) {
    for (const ProgramSlot& slot : layout.slots) {
      for (const int stage : stages_in(slot.slot)) ++copies_[stage][slot.rank];
    }
  }

  // `slots`: the rank's, in order.
  [[nodiscard]] RankMemory of_rank(std::size_t rank, const std::vector<std::size_t>& slots) const {
    const Held held = held_by(rank);
    RankMemory memory{.peak = lasting(held)};
    const Offloaded offloaded = offloaded_of(rank, memory.peak.optimizer);
    memory.host = offloaded.host;
    const std::vector<SlotStay> stays = stays_of(slots, offloaded);
    std::vector<MemoryChange> others = offloaded.activations;
    others.insert(others.end(), offloaded.states.begin(), offloaded.states.end());
    const double update = update_memory(setup_, held.own, held.copies);
    if (update > 0 && !slots.empty()) others.push_back({.at = slots_[slots.back()].end, .workspace = update});
    memory.changes = changes_of(stays, std::move(others));
    if (offloaded.states.empty()) {
      for (MemoryChange& change : memory.changes) change.optimizer = memory.peak.optimizer;
    }
    for (const MemoryChange& change : memory.changes) memory.most_passes = std::max(memory.most_passes, change.passes);
    StepMemory rest = memory.peak;
    rest.optimizer = 0;
    memory.peaks = peaks_of(memory.changes, stays, rest.total());
    add_peak(memory);
    return memory;
  }

 private:
  static std::vector<int> stages_in(const Slot& slot) {
    std::vector<int> stages;
    if (has_forward(slot.kind)) stages.push_back(slot.forward.stage);
    if (slot.kind != SlotKind::forward) stages.push_back(slot.backward.stage);
    return stages;
  }

  [[nodiscard]] StageMemory memory_of(const StageBlocks& blocks, int micro_batch) const {
    StageMemory stage;
    for (const Block& block : blocks) {
      const LayerWork work = setup_.block_work(true, block, 0, micro_batch);
      stage.push_back({.is_head = block.kind == BlockKind::head,
                       .saved = saved_bytes(work),
                       .pending = pending_weight_bytes(work),
                       .forward_workspace = forward_workspace_bytes(work),
                       .backward_workspace = backward_workspace_bytes(work)});
    }
    return stage;
  }

  [[nodiscard]] const StageMemory& of(const Pass& pass) const {
    const std::pair key{pass.stage, seq_len_of(as_train(setup_.scenario.workload), pass.micro_batch)};
    const auto found = stages_.find(key);
    if (found != stages_.end()) return found->second;
    return stages_.emplace(key, memory_of(blocks_of(pass), pass.micro_batch)).first->second;
  }

  [[nodiscard]] const StageBlocks& blocks_of(const Pass& pass) const {
    return layout_.stages[static_cast<std::size_t>(pass.stage)];
  }

  // What leaves the rank's memory for a while.
  struct Offloaded {
    std::map<std::pair<int, int>, double> layers;  // bytes by micro-batch and layer
    std::vector<MemoryChange> activations, states;
    double host = 0;
  };

  [[nodiscard]] Offloaded offloaded_of(std::size_t rank, double states) const {
    Offloaded offloaded;
    std::vector<MemoryChange> waiting;
    for (const OffloadedStay& stay : stays_) {
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
  [[nodiscard]] StageMemory kept(const Pass& pass, const Offloaded& offloaded) const {
    StageMemory stage = of(pass);
    if (offloaded.layers.empty()) return stage;
    const StageBlocks& blocks = blocks_of(pass);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (!is_layer(blocks[i].kind)) continue;
      const auto away = offloaded.layers.find({pass.micro_batch, blocks[i].layer});
      if (away != offloaded.layers.end()) stage[i].saved -= away->second;
    }
    return stage;
  }

  [[nodiscard]] std::vector<SlotStay> stays_of(const std::vector<std::size_t>& slots,
                                               const Offloaded& offloaded) const {
    std::vector<SlotStay> stays;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const PhaseTimes& row = slots_[slots[i]];
      const Slot& slot = layout_.slots[slots[i]].slot;
      // Where slots overlap at their ends, hardly any of it is left when the next one begins.
      const Time next = i + 1 < slots.size() ? slots_[slots[i + 1]].start : Time::max();
      const StageMemory forward = has_forward(slot.kind) ? kept(slot.forward, offloaded) : StageMemory{};
      const StageMemory backward = slot.kind != SlotKind::forward ? kept(slot.backward, offloaded) : StageMemory{};
      stays.push_back({row.start, std::min(row.end, next), slot.kind, slot_memory(slot.kind, forward, backward)});
    }
    return stays;
  }

  static void add_peak(RankMemory& memory) {
    const auto fuller = [](const MemoryChange& a, const MemoryChange& b) { return a.total() < b.total(); };
    const auto most = std::max_element(memory.changes.begin(), memory.changes.end(), fuller);
    if (most == memory.changes.end()) return;
    memory.peak.activations = most->activations;
    memory.peak.workspace = most->workspace;
    memory.peak.optimizer = most->optimizer;
    memory.peak_at = most->at;
  }

  // The stages of a rank, each of which so many ranks hold, and the parameters of all of them.
  struct Held {
    std::vector<StageBlocks> stages;
    int copies = 1;
    StageParameters own;
  };

  [[nodiscard]] Held held_by(std::size_t rank) const {
    Held held;
    StageBlocks all;
    for (const auto& [stage, holders] : copies_) {
      if (!holders.contains(static_cast<std::uint32_t>(rank))) continue;
      held.copies = static_cast<int>(holders.size());
      held.stages.push_back(layout_.stages[static_cast<std::size_t>(stage)]);
      all.insert(all.end(), held.stages.back().begin(), held.stages.back().end());
    }
    held.own = parameters_of(all);
    return held;
  }

  [[nodiscard]] StepMemory lasting(const Held& held) const {
    StepMemory memory = lasting_memory(setup_, held.own, held.copies, neighbours_of(held.stages));
    memory.communication = buffers();
    return memory;
  }

  // Of Megatron's other dispatchers they are not known.
  [[nodiscard]] double buffers() const {
    const Comm& comm = setup_.scenario.comm;
    if (!dispatcher_of(comm.mode).of_deep_ep) return 0;
    const LayerWork work = setup_.layer_work(true, 0);
    return dispatcher_of(comm.mode).buffers({.hidden = 1.0 * setup_.model.hidden_size,
                                             .tokens = work.own_tokens(),
                                             .top_k = setup_.model.num_experts_per_tok,
                                             .local_experts = work.local_experts(),
                                             .ep = work.ep,
                                             .gpus_per_node = work.gpus_per_node,
                                             .sms = transfer_sms(setup_),
                                             .dispatch = comm.dispatch,
                                             .topology = comm.topology});
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
  const std::vector<PhaseTimes>& slots_;
  const std::vector<OffloadedStay>& stays_;
  mutable std::map<std::pair<int, int>, StageMemory> stages_;  // by stage and length of a sequence
  std::map<int, std::map<std::uint32_t, int>> copies_;         // of each stage, by rank
};

}  // namespace

std::vector<RankMemory> step_memory(const Setup& setup, const StepLayout& layout, const std::vector<PhaseTimes>& slots,
                                    const std::vector<OffloadedStay>& stays) {
  const StepAccount account(setup, layout, slots, stays);
  std::vector<std::vector<std::size_t>> of_ranks(static_cast<std::size_t>(setup.scenario.parallelism.pp));
  for (std::size_t i = 0; i < layout.slots.size(); ++i) of_ranks[layout.slots[i].rank].push_back(i);
  std::vector<RankMemory> ranks;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) ranks.push_back(account.of_rank(rank, of_ranks[rank]));
  return ranks;
}

}  // namespace moeline
