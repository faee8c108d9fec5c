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

// All pieces of a phase.
using Pieces = std::vector<PhaseTasks>;

// What comes behind a phase: the same piece of what is cut as well, else the whole.
template <class Connect>
void connect(const Pieces& before, const Pieces& after, const Connect& connect) {
  const bool piecewise = before.size() > 1 && after.size() > 1;
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t j = 0; j < after.size(); ++j) {
      if (!piecewise || i == j) connect(before[i], after[j]);
    }
  }
}

void order(RankProgram& rank, const Pieces& before, const Pieces& after) {
  connect(before, after, [&](const PhaseTasks& one, const PhaseTasks& next) { rank.order(one, next); });
}

constexpr const char* kEmbeddingWeights = "embedding(W)";

// The way of the data through a pass: every phase needs the result of the one before, in whatever block.
class DataPath {
 public:
  DataPath(RankProgram& rank, const TrainingPhases& phases, int micro_batch)
      : rank_(rank), phases_(phases), micro_batch_(micro_batch) {}

  /// `work`: what the rank does last before it meets the others; null: what gave the data.
  void link(const std::string& name, const PhaseTasks& now, const PhaseTasks* work = nullptr) {
    link(name, Pieces{now}, work);
  }
  void link(const std::string& name, const Pieces& now, const PhaseTasks* work = nullptr) {
    if (last_name_.empty()) {
      ends_.input = now.front();
    } else {
      order(rank_, last_, now);
      const bool meets_ranks = (is_transfer(name) && !is_transfer(last_name_)) || now.front().begins_together;
      if (meets_ranks) meet(name, now, work);
    }
    ends_.output = now.back();
    last_ = now;
    last_name_ = name;
  }
  [[nodiscard]] bool is_empty() const { return last_name_.empty(); }
  [[nodiscard]] const PassTasks& ends() const { return ends_; }

 private:
  // A piece is ready with its own piece of the work, or with all of it.
  void meet(const std::string& name, const Pieces& now, const PhaseTasks* work) {
    const double wait_us = phases_.wait_us(name, micro_batch_);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const PhaseTasks& before = last_.size() == now.size() ? last_[i] : last_.back();
      rank_.meet(work == nullptr ? before : *work, now[i], wait_us);
    }
  }

  RankProgram& rank_;
  const TrainingPhases& phases_;
  int micro_batch_;
  PassTasks ends_;
  Pieces last_;
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

using Turn = std::map<std::string, Pieces>;

struct StreamEntry {
  std::string phase;
  StreamName stream;
  Piece piece{};
};

// Entries of a bracket take turns, piece by piece.
void add_bracket(const Bracket& bracket, StreamName stream, int pieces, std::vector<StreamEntry>& order) {
  const PlanContents contents = training_plan_contents();
  for (int piece = 0; piece < pieces; ++piece) {
    for (const PlanEntry& entry : bracket) {
      const int count = is_cut(entry, contents) ? pieces : 1;
      if (piece < count) order.push_back({entry.phase, stream, {piece, count}});
    }
  }
}

// Communication first: at equal start times the smaller id takes its SMs first.
std::vector<StreamEntry> by_stream(const OverlapPlan& plan) {
  std::vector<StreamEntry> order;
  for (const Bracket& each : brackets_of(plan.communication))
    add_bracket(each, StreamName::communication, plan.pieces, order);
  for (const Bracket& each : brackets_of(plan.compute)) add_bracket(each, StreamName::compute, plan.pieces, order);
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
  const std::vector<Bracket> transfers = brackets_of(plan.communication);
  auto transfer = transfers.begin();
  const auto launch_transfers = [&](const auto& is_ready) {
    const auto all_ready = [&](const Bracket& bracket) {
      return std::all_of(bracket.begin(), bracket.end(),
                         [&](const PlanEntry& entry) { return is_ready(giver_of(entry.phase, delay_weights)); });
    };
    for (; transfer != transfers.end() && all_ready(*transfer); ++transfer) {
      add_bracket(*transfer, StreamName::communication, plan.pieces, order);
    }
  };
  const auto is_launched = [&](const std::string& giver) {
    return giver.empty() ||
           std::any_of(order.begin(), order.end(), [&](const StreamEntry& entry) { return entry.phase == giver; });
  };
  launch_transfers(is_launched);
  for (const Bracket& each : brackets_of(plan.compute)) {
    add_bracket(each, StreamName::compute, plan.pieces, order);
    launch_transfers(is_launched);
  }
  launch_transfers([](const std::string&) { return true; });
  return order;
}

void order_weights(RankProgram& rank, BlockKind block, const Turn& turn) {
  for (const std::string& name : weight_phases(block)) {
    const auto before = turn.find(with_pass(name, "(B)"));
    if (before != turn.end()) order(rank, before->second, turn.at(name));
  }
}

// The backward pass goes on once the gradients of the weights are there, too. `before`: the last ones of the turn
// before.
void weights_first(RankProgram& rank, const Turn& turn, Pieces& before) {
  const auto at = [&](const char* name) { return turn.find(name); };
  const auto combine = at("combine(B)"), dispatch = at("dispatch(B)"), experts = at("mlp(W)"), last = at("attn(W)");
  if (combine != turn.end()) order(rank, before, combine->second);
  if (experts != turn.end() && dispatch != turn.end()) order(rank, experts->second, dispatch->second);
  before = last == turn.end() ? Pieces{} : last->second;
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
      const bool ends_here = kind == PassKind::backward && path.is_empty();  // of an embedding alone
      if (!name.ends_with("(W)") || ends_here) path.link(name, now, work ? &*work : nullptr);
    }
    for (const TaskId task : there) phases.graph().start_after_end(task, chain.first());
    if (around.after) around.after(block, {chain.first(), rank.computed()});
  }
  return path.ends();
}

PlanContents training_plan_contents() {
  return {.phases = training_phase_names(),
          .halved = {},
          .absent = {},
          .cut = {"dispatch(F)", "mlp(F)", "combine(F)", "combine(B)", "mlp(B)", "mlp(W)", "dispatch(B)"}};
}

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
  Pieces weights_before;
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
      const bool has_pieces = block != nullptr && block->kind == BlockKind::moe_layer;
      if (name.empty() || (!has_pieces && entry.piece.index > 0)) continue;
      const Piece piece = has_pieces ? entry.piece : Piece{};
      const int micro_batch = is_forward ? passes.forward_micro_batch : passes.backward_micro_batch;
      turn[name].push_back(rank.append(phases.at(name, *block, rank.rank(), micro_batch, piece),
                                       {block->layer, micro_batch, entry.stream, false, piece}));
      (is_forward ? beside_forward : beside_backward).add(name, turn[name].back());
    }
    beside_forward.finish(phases.graph());
    beside_backward.finish(phases.graph());
    if (forward_block != nullptr) {
      for (const std::string& name : phases.forward(forward_block->kind)) forward.link(name, turn.at(name));
    }
    if (backward_block != nullptr) {
      for (const std::string& name : phases.backward(backward_block->kind)) backward.link(name, turn.at(name));
      if (backward_block->kind == BlockKind::embedding && backward.is_empty()) {
        backward.link(kEmbeddingWeights, turn.at(kEmbeddingWeights));  // it is alone: gradients end here
      }
      order_weights(rank, backward_block->kind, turn);
    }
    const auto dispatch = turn.find("dispatch(F)");
    const auto weights = turn.find("mlp(W)");
    const bool reads_counts = phases.setup().scenario.launch == Launch::stream && !launches;
    if (reads_counts && dispatch != turn.end() && weights != turn.end()) {
      for (const PhaseTasks& piece : dispatch->second) rank.host_edge(piece, weights->second.front());
    }
    if (!choices.delay_weights) weights_first(rank, turn, weights_before);
  }
  return {forward.ends(), backward.ends()};
}

}  // namespace moeline
