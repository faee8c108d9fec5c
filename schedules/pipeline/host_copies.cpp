#include "schedules/pipeline/host_copies.hpp"

#include <algorithm>
#include <string_view>

#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/training_memory.hpp"

namespace moeline {

using namespace module_names;

namespace {

constexpr int kNoLayer = -1;

int last_layer(std::span<const Block> blocks) {
  int last = kNoLayer;
  for (const Block& block : blocks) last = is_layer(block.kind) ? std::max(last, block.layer) : last;
  return last;
}

}  // namespace

AroundBlocks HostCopies::around_forward(RankProgram& rank, std::span<const Block> blocks, int micro_batch,
                                        bool returns_at_once) {
  AroundBlocks around;
  if (!program_.setup().scenario.training.offload.any()) return around;
  const int staying = returns_at_once ? last_layer(blocks) : kNoLayer;
  around.after = [this, &rank, staying, micro_batch](const Block& block, const BlockTasks& tasks) {
    if (block.layer != staying) leave(rank, block, micro_batch, tasks);
  };
  return around;
}

AroundBlocks HostCopies::around_backward(RankProgram& rank, int micro_batch) {
  AroundBlocks around;
  if (!program_.setup().scenario.training.offload.any()) return around;
  around.before = [this, &rank, micro_batch](const Block& block) { return come_back(rank, block, micro_batch); };
  around.after = [this, &rank, micro_batch](const Block& block, const BlockTasks& tasks) {
    used(rank, block, micro_batch, tasks);
  };
  return around;
}

double HostCopies::bytes_of(const Block& block, int micro_batch) const {
  return offloaded_bytes(program_.setup().block_work(true, block, 0, micro_batch));
}

PhaseTasks HostCopies::append(RankProgram& rank, Family family, const char* module, double bytes, const Place& place) {
  const auto [found, is_new] = phases_.try_emplace({family, module, bytes}, nullptr);
  if (is_new) {
    const bool leaves = family == Family::to_host;
    Operator op = kernels::memory(family, leaves ? "Memcpy DtoH" : "Memcpy HtoD", bytes);
    found->second = &program_.prepare(leaves ? kOffload : kReload, {kernels::in(module, op)}, {});
    // States are appended behind all passes, and launched before them.
    found->second->kernels.front().launched_before = module == std::string_view(kOffloadedStates);
  }
  return rank.append(*found->second, place);
}

void HostCopies::leave(RankProgram& rank, const Block& block, int micro_batch, const BlockTasks& forward) {
  const double bytes = bytes_of(block, micro_batch);
  if (bytes == 0) return;
  const PhaseTasks copy =
      append(rank, Family::to_host, kOffloadedActivations, bytes, {block.layer, micro_batch, StreamName::to_host});
  program_.graph().start_after_end(forward.computed, copy.first);
  away_[{rank.rank(), block.layer, micro_batch}] = {.left = copy.last};
  const auto number = static_cast<std::uint32_t>(rank.rank());
  stays_.push_back({number, block, micro_batch, false, forward.first, copy.last});
}

std::vector<TaskId> HostCopies::come_back(RankProgram& rank, const Block& block, int micro_batch) {
  const auto away = away_.find({rank.rank(), block.layer, micro_batch});
  if (!is_layer(block.kind) || away == away_.end()) return {};
  const PhaseTasks copy = append(rank, Family::from_host, kOffloadedActivations, bytes_of(block, micro_batch),
                                 {block.layer, micro_batch, StreamName::from_host});
  program_.graph().start_after_end(away->second.left, copy.first);
  const auto last = last_backward_.find(rank.rank());
  if (last != last_backward_.end()) program_.graph().start_after_start(last->second, copy.first);
  away->second.back = copy.first;
  return {copy.last};
}

void HostCopies::used(const RankProgram& rank, const Block& block, int micro_batch, const BlockTasks& backward) {
  if (backward.first == kNoTask) return;
  last_backward_.insert_or_assign(rank.rank(), backward.first);
  const auto away = away_.find({rank.rank(), block.layer, micro_batch});
  if (!is_layer(block.kind) || away == away_.end()) return;
  const auto number = static_cast<std::uint32_t>(rank.rank());
  stays_.push_back({number, block, micro_batch, true, away->second.back, backward.computed});
  away_.erase(away);
}

TaskId HostCopies::move_states(RankProgram& rank, double bytes, std::span<const TaskId> complete) {
  const auto number = static_cast<std::uint32_t>(rank.rank());
  const PhaseTasks out = append(rank, Family::to_host, kOffloadedStates, bytes, {0, 0, StreamName::states_to_host});
  const PhaseTasks back =
      append(rank, Family::from_host, kOffloadedStates, bytes, {0, 0, StreamName::states_from_host});
  program_.graph().start_after_end(out.last, back.first);
  for (const TaskId task : complete) program_.graph().start_after_end(task, back.first);
  stays_.push_back({.rank = number, .to = out.last});
  stays_.push_back({.rank = number, .is_back = true, .from = back.first});
  return back.last;
}

}  // namespace moeline
