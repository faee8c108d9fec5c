#include "schedules/lowering/training_passes.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace moeline {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "mlp(B)", "(W)" -> "mlp(W)"
std::string with_pass(const std::string& phase, const std::string& pass) {
  return phase.substr(0, phase.size() - pass.size()) + pass;
}

// Forward work that full recomputation repeats before a block's backward pass: nothing there needs what combine gives,
// but Megatron repeats the layer as it is.
std::vector<std::string> recomputed_phases(const TrainingPhases& phases, BlockKind block) {
  if (!is_layer(block) || phases.setup().scenario.training.recompute != Recompute::full) return {};
  std::vector<std::string> names = phases.forward(block);
  if (!phases.setup().scenario.training.by_megatron()) std::erase(names, "combine(F)");
  return names;
}

// In order of execution; weights' gradients behind those of the inputs of the same operators.
std::vector<std::string> phases_of(const TrainingPhases& phases, PassKind kind, BlockKind block) {
  if (kind == PassKind::forward) return phases.forward(block);
  if (kind == PassKind::backward_input) return phases.backward(block);
  const std::vector<std::string>& weights = weight_phases(block);
  if (kind == PassKind::weight || phases.backward(block).empty()) return weights;
  std::vector<std::string> names;
  for (const std::string& name : phases.backward(block)) {
    names.push_back(name);
    if (contains(weights, with_pass(name, "(W)"))) names.push_back(with_pass(name, "(W)"));
  }
  return names;
}

// The way of the data through a pass: every phase needs the result of the one before, in whatever block.
class DataPath {
 public:
  DataPath(RankProgram& rank, const TrainingPhases& phases, int micro_batch)
      : rank_(rank), phases_(phases), micro_batch_(micro_batch) {}

  /// `work`: what the rank does last before it meets the others; null: what gave the data.
  void link(const std::string& name, const PhaseTasks& now, const PhaseTasks* work = nullptr) {
    if (last_name_.empty()) {
      ends_.input = now;
    } else {
      rank_.order(ends_.output, now);
      const bool meets_ranks = (is_transfer(name) && !is_transfer(last_name_)) || now.begins_together;
      if (meets_ranks) rank_.meet(work == nullptr ? ends_.output : *work, now, phases_.wait_us(name, micro_batch_));
    }
    ends_.output = now;
    last_name_ = name;
  }
  [[nodiscard]] const PassTasks& ends() const { return ends_; }

 private:
  RankProgram& rank_;
  const TrainingPhases& phases_;
  int micro_batch_;
  PassTasks ends_;
  std::string last_name_;
};

// One phase after the other, whatever their streams.
class Chain {
 public:
  Chain(RankProgram& rank, TrainingPhases& phases, int micro_batch)
      : rank_(rank), phases_(phases), micro_batch_(micro_batch) {}

  const PhaseTasks& append(const std::string& name, const Block& block, bool repeats = false) {
    const PhaseTasks now = rank_.append(phases_.at(name, block, rank_.rank(), micro_batch_),
                                        {block.layer, micro_batch_, stream_of(name), repeats});
    if (last_) rank_.order(*last_, now);
    if (first_ == kNoTask) first_ = now.first;
    return last_.emplace(now);
  }
  void begin_block() { first_ = kNoTask; }
  /// Of the block's tasks.
  [[nodiscard]] TaskId first() const { return first_; }
  [[nodiscard]] const std::optional<PhaseTasks>& last() const { return last_; }

 private:
  RankProgram& rank_;
  TrainingPhases& phases_;
  int micro_batch_;
  TaskId first_ = kNoTask;
  std::optional<PhaseTasks> last_;
};

// What a block has to do where the plan names a phase of a MoE layer: the same, for blocks that are no layers instead
// of mlp their own, or nothing.
std::string phase_at(const TrainingPhases& phases, const std::string& planned, BlockKind block) {
  const std::string pass = planned.substr(planned.size() - 3);
  const std::vector<std::string>& names = pass == "(F)"   ? phases.forward(block)
                                          : pass == "(B)" ? phases.backward(block)
                                                          : weight_phases(block);
  if (contains(names, planned)) return planned;
  return is_layer(block) || !planned.starts_with("mlp") || names.empty() ? "" : names.front();
}

using Turn = std::map<std::string, PhaseTasks>;

struct StreamEntry {
  std::string phase;
  StreamName stream;
};

// Communication first: at equal start times the smaller id takes its SMs first.
std::vector<StreamEntry> by_stream(const OverlapPlan& plan) {
  std::vector<StreamEntry> order;
  for (const PlanEntry& entry : plan.communication) order.push_back({entry.phase, StreamName::communication});
  for (const PlanEntry& entry : plan.compute) order.push_back({entry.phase, StreamName::compute});
  return order;
}

// What a transfer sends is there behind this phase of the same turn, if it is not there before. Autograd gives the
// gradients of a network's input and weights at once, where the latter are not delayed.
std::string giver_of(const std::string& transfer, bool delay_weights) {
  if (transfer == "dispatch(F)") return "attn(F)";
  if (transfer == "combine(F)") return "mlp(F)";
  if (transfer == "dispatch(B)") return delay_weights ? "mlp(B)" : "mlp(W)";
  return "";
}

// One host launches both streams: a transfer as soon as what it sends has been launched.
std::vector<StreamEntry> as_launched(const OverlapPlan& plan, bool delay_weights) {
  std::vector<StreamEntry> order;
  auto transfer = plan.communication.begin();
  const auto launch_transfers = [&](const auto& is_ready) {
    for (; transfer != plan.communication.end() && is_ready(giver_of(transfer->phase, delay_weights)); ++transfer) {
      order.push_back({transfer->phase, StreamName::communication});
    }
  };
  const auto is_launched = [&](const std::string& giver) {
    return giver.empty() ||
           std::any_of(order.begin(), order.end(), [&](const StreamEntry& entry) { return entry.phase == giver; });
  };
  launch_transfers(is_launched);
  for (const PlanEntry& entry : plan.compute) {
    order.push_back({entry.phase, StreamName::compute});
    launch_transfers(is_launched);
  }
  launch_transfers([](const std::string&) { return true; });
  return order;
}

void order_weights(RankProgram& rank, BlockKind block, const Turn& turn) {
  for (const std::string& name : weight_phases(block)) {
    const auto before = turn.find(with_pass(name, "(B)"));
    if (before != turn.end()) rank.order(before->second, turn.at(name));
  }
}

// The backward pass goes on once the gradients of the weights are there, too. `before`: the last ones of the turn
// before.
void weights_first(RankProgram& rank, const Turn& turn, std::optional<PhaseTasks>& before) {
  const auto at = [&](const char* name) { return turn.find(name); };
  const auto combine = at("combine(B)"), dispatch = at("dispatch(B)"), experts = at("mlp(W)"), last = at("attn(W)");
  if (before && combine != turn.end()) rank.order(*before, combine->second);
  if (experts != turn.end() && dispatch != turn.end()) rank.order(experts->second, dispatch->second);
  before = last == turn.end() ? std::nullopt : std::optional(last->second);
}

std::vector<TaskId> before_block(const AroundBlocks& around, const Block& block) {
  return around.before ? around.before(block) : std::vector<TaskId>{};
}

// Of two passes side by side: what stands around the block of one.
class BesideBlock {
 public:
  BesideBlock(const AroundBlocks& around, const Block* block)
      : around_(around),
        block_(block),
        there_(block == nullptr ? std::vector<TaskId>{} : before_block(around, *block)) {}

  /// Transfers need nothing that comes before a block.
  void add(const std::string& name, const PhaseTasks& phase) {
    if (is_transfer(name)) return;
    if (tasks_.first == kNoTask) tasks_.first = phase.first;
    tasks_.computed = phase.last;
  }
  void finish(TaskGraphDraft& graph) const {
    if (tasks_.first == kNoTask) return;
    for (const TaskId task : there_) graph.start_after_end(task, tasks_.first);
    if (around_.after) around_.after(*block_, tasks_);
  }

 private:
  const AroundBlocks& around_;
  const Block* block_;
  std::vector<TaskId> there_;
  BlockTasks tasks_;
};

}  // namespace

AroundBlocks both(AroundBlocks one, AroundBlocks other) {
  if (!other.before && !other.after) return one;
  AroundBlocks around;
  around.before = [one, other](const Block& block) {
    std::vector<TaskId> tasks = before_block(one, block);
    for (const TaskId task : before_block(other, block)) tasks.push_back(task);
    return tasks;
  };
  around.after = [one, other](const Block& block, const BlockTasks& tasks) {
    if (one.after) one.after(block, tasks);
    if (other.after) other.after(block, tasks);
  };
  return around;
}

PassTasks append_pass(RankProgram& rank, TrainingPhases& phases, PassKind kind, std::span<const Block> blocks,
                      int micro_batch, const AroundBlocks& around) {
  using Names = std::vector<std::string>;
  const bool needs_activations = kind == PassKind::backward || kind == PassKind::backward_input;
  // By Megatron the gradient comes first; DeepSeek's repeat a layer before its turn.
  const bool recomputes_in_backward = phases.setup().scenario.training.by_megatron();
  Chain chain(rank, phases, micro_batch);
  DataPath path(rank, phases, micro_batch);
  for (const Block& block : blocks) {
    const std::vector<std::string> names = phases_of(phases, kind, block.kind);
    const std::vector<TaskId> there = names.empty() ? std::vector<TaskId>{} : before_block(around, block);
    chain.begin_block();
    for (const std::string& name : needs_activations ? recomputed_phases(phases, block.kind) : Names{}) {
      const PhaseTasks& again = chain.append(name, block, true);
      if (recomputes_in_backward) path.link(name, again);
    }
    for (const std::string& name : names) {
      const std::optional<PhaseTasks> work = chain.last();
      const PhaseTasks& now = chain.append(name, block);
      if (!name.ends_with("(W)")) path.link(name, now, work ? &*work : nullptr);
    }
    for (const TaskId task : there) phases.graph().start_after_end(task, chain.first());
    if (around.after) around.after(block, {chain.first(), rank.computed()});
  }
  return path.ends();
}

PlanContents training_plan_contents() { return {.phases = training_phase_names(), .halved = {}, .absent = {}}; }

OverlapPlan training_plan(const Scenario& scenario) {
  if (scenario.plan) return *scenario.plan;
  const bool named = scenario.overlap == kCombined || scenario.overlap == "none";
  return load_overlap_plan("dualpipe-chunk", named ? "default" : scenario.overlap, training_plan_contents());
}

OverlappedTasks append_overlapped(RankProgram& rank, TrainingPhases& phases, const OverlapPlan& plan,
                                  const OverlappedPasses& passes) {
  const TrainingChoices& choices = phases.setup().scenario.training;
  const bool launches = rank.has_host();
  const std::vector<StreamEntry> order = launches ? as_launched(plan, choices.delay_weights) : by_stream(plan);
  DataPath forward(rank, phases, passes.forward_micro_batch);
  DataPath backward(rank, phases, passes.backward_micro_batch);
  std::optional<PhaseTasks> weights_before;
  for (std::size_t i = 0; i < std::max(passes.forward.size(), passes.backward.size()); ++i) {
    const Block* forward_block = i < passes.forward.size() ? &passes.forward[i] : nullptr;
    const Block* backward_block = i < passes.backward.size() ? &passes.backward[i] : nullptr;
    BesideBlock beside_forward(passes.around_forward, forward_block);
    BesideBlock beside_backward(passes.around_backward, backward_block);
    if (backward_block != nullptr) {
      Chain again(rank, phases, passes.backward_micro_batch);
      for (const std::string& name : recomputed_phases(phases, backward_block->kind)) {
        again.append(name, *backward_block, true);
      }
    }
    Turn turn;
    for (const StreamEntry& entry : order) {
      const bool is_forward = entry.phase.ends_with("(F)");
      const Block* block = is_forward ? forward_block : backward_block;
      const std::string name = block == nullptr ? "" : phase_at(phases, entry.phase, block->kind);
      if (name.empty()) continue;
      const int micro_batch = is_forward ? passes.forward_micro_batch : passes.backward_micro_batch;
      turn[name] =
          rank.append(phases.at(name, *block, rank.rank(), micro_batch), {block->layer, micro_batch, entry.stream});
      (is_forward ? beside_forward : beside_backward).add(name, turn[name]);
    }
    beside_forward.finish(phases.graph());
    beside_backward.finish(phases.graph());
    if (forward_block != nullptr) {
      for (const std::string& name : phases.forward(forward_block->kind)) forward.link(name, turn.at(name));
    }
    if (backward_block != nullptr) {
      for (const std::string& name : phases.backward(backward_block->kind)) backward.link(name, turn.at(name));
      order_weights(rank, backward_block->kind, turn);
    }
    const auto dispatch = turn.find("dispatch(F)");
    const auto weights = turn.find("mlp(W)");
    const bool reads_counts = phases.setup().scenario.launch == Launch::stream && !launches;
    if (reads_counts && dispatch != turn.end() && weights != turn.end()) {
      rank.host_edge(dispatch->second, weights->second);
    }
    if (!choices.delay_weights) weights_first(rank, turn, weights_before);
  }
  return {forward.ends(), backward.ends()};
}

}  // namespace moeline
