#include "schedules/lowering/inference_program.hpp"

#include <algorithm>

#include "moe/collectives.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "schedules/lowering/joint_message.hpp"
#include "schedules/lowering/prepared_phases.hpp"
#include "schedules/lowering/rank_program.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

// How many MoE layers the model has before a layer of the step.
int moe_layers_before(int layer, const Setup& setup) {
  const Architecture& model = setup.model;
  const int main = std::max(0, layer - setup.first_main_layer()) % model.main_layers();
  return model.moe_layers_before(model.first_main_layer() + main);
}

int first_alike(const std::vector<Block>& layers, const Block& block) {
  const auto is_alike = [&](const Block& other) { return are_alike(other, block); };
  return static_cast<int>(std::find_if(layers.begin(), layers.end(), is_alike) - layers.begin());
}

}  // namespace

InferencePhases::InferencePhases(ProgramDraft& program, const InferenceShape& shape)
    : program_(program), shape_(shape), blocks_(inference_blocks(program.setup())), layers_(blocks_) {
  std::erase_if(layers_, [](const Block& block) { return !is_layer(block.kind); });
  for (const Block& block : layers_) {
    moe_layers_.push_back(moe_layers_before(static_cast<int>(moe_layers_.size()), program.setup()));
    alike_.push_back(first_alike(layers_, block));
  }
}

CommMode InferencePhases::mode() const { return program_.setup().scenario.comm.mode; }

// What goes by the rows of a MoE layer's experts.
bool InferencePhases::is_of_experts(const std::string& phase, int layer) const {
  return phase == "mlp" && block(layer).kind == BlockKind::moe_layer;
}

int InferencePhases::pieces_of(const std::string& phase, int layer) const {
  return is_transfer(phase) || is_of_experts(phase, layer) ? shape_.plan.pieces : 1;
}

PhaseIdentity InferencePhases::identity_of(const StepPhase& which, int rank) const {
  const Setup& setup = program_.setup();
  const auto number = static_cast<std::size_t>(which.layer);
  const bool computes = is_of_experts(which.phase, which.layer);
  const bool of_layer = (is_transfer(which.phase) || computes) && setup.loads_differ();
  const bool of_rank = setup.requests_differ() || (of_layer && !is_transfer(which.phase));
  const int moe_layer = moe_layers_[number];
  const int experts = rank / setup.scenario.parallelism.moe_tp;  // ranks that share experts get the same rows
  const int drawn_piece = shape_.plan.pieces_by == PiecesBy::token ? which.piece : 0;  // of experts, parts of one draw
  return {.kind = block(which.layer).kind,
          .alike = alike_[number],
          .micro_batch = which.micro_batch,
          .piece = which.piece,
          .layer = of_layer ? moe_layer : 0,
          .rank = of_rank ? rank : 0,
          .draw = computes ? setup.scatter_draw(std::max(0, which.micro_batch), moe_layer, experts, drawn_piece) : 0,
          .phase = which.phase};
}

InferenceWork InferencePhases::work_of(const StepPhase& which, int rank, int pieces) const {
  const bool whole = which.micro_batch < 0;
  const MicroBatch part = whole ? MicroBatch{} : MicroBatch{which.micro_batch, shape_.micro_batches, shape_.plan.split};
  const Piece piece{which.piece, pieces};
  const bool cuts_experts = shape_.plan.pieces_by == PiecesBy::expert && pieces > 1;
  const int moe_layer = moe_layers_[static_cast<std::size_t>(which.layer)];
  InferenceWork work = program_.setup().inference_work(part, moe_layer, rank, cuts_experts ? Piece{} : piece);
  work.core_first = shape_.plan.core_first();
  return cuts_experts ? of_experts(std::move(work), piece) : work;
}

std::vector<Operator> InferencePhases::operators_of(const StepPhase& which, int rank) const {
  const auto operators = [&](int pieces) {
    return inference_phase(which.phase, work_of(which, rank, pieces), block(which.layer));
  };
  std::vector<Operator> ops = operators(pieces_of(which.phase, which.layer));
  if (!shape_.plan.receives_once(which.phase)) return ops;
  ops.resize(kReceive);
  if (which.piece + 1 < shape_.plan.pieces) return ops;
  const std::vector<Operator> whole = operators(1);
  ops.insert(ops.end(), whole.begin() + kReceive, whole.end());
  return ops;
}

// The mean load takes another time than loads do on average, and ranks wait for the slowest of them: times go by whole
// tiles and waves, and of few rows by how many experts get any.
OperatorsByLoad InferencePhases::operators_by_load(const StepPhase& which, int rank) const {
  if (!is_of_experts(which.phase, which.layer) || program_.setup().every_rank) return {};
  InferenceWork work = work_of(which, rank, pieces_of(which.phase, which.layer));
  if (work.load.choice.tokens == 0) return {};
  OperatorsByLoad by_load{typical_loads(work.load, static_cast<int>(work.local_experts())), {}};
  for (const ExpertLoad& load : by_load.loads->loads()) {
    work.load = load;
    by_load.ops.push_back(inference_phase(which.phase, work, block(which.layer)));
  }
  return by_load;
}

PhaseOptions InferencePhases::options_of(const std::string& phase) const {
  const bool behind = std::find(shape_.behind.begin(), shape_.behind.end(), phase) != shape_.behind.end();
  return {.overlapped = shape_.overlapped,
          .meetings = true,
          .sms = phase_sms(shape_.plan, phase, program_.setup()),
          .leaves_sms = shape_.releases == 0 || behind,
          .released = shape_.releases > 0 && (phase == "mlp" || phase == "combine")};
}

void InferencePhases::release_blocks(const StepPhase& which, int rank, PreparedPhase& prepared) {
  if (is_of_experts(which.phase, which.layer)) {
    program_.release(prepared.kernels.back(), shape_.releases);
  } else if (which.phase == "combine") {
    const int parts = sends_of(shape_.releases);
    InferenceWork part = work_of(which, rank, pieces_of(which.phase, which.layer));
    part.decode.requests /= parts;
    part.padding /= parts;
    const std::vector<Operator> ops = inference_phase(which.phase, part, block(which.layer));
    program_.release(prepared.kernels[0], parts, ops[0], Once::first);
    program_.release(prepared.kernels[1], parts, ops[1], Once::last);
  }
}

PreparedPhase& InferencePhases::at(const StepPhase& which, int rank) {
  return prepared_.get(identity_of(which, rank), [&]() -> PreparedPhase& {
    PreparedPhase& prepared = program_.prepare(which.phase, operators_of(which, rank), options_of(which.phase),
                                               operators_by_load(which, rank));
    if (shape_.releases > 0) release_blocks(which, rank, prepared);
    return prepared;
  });
}

Place InferenceRank::place_of(const StepPhase& which, StreamName stream) const {
  return {.layer = which.layer,
          .micro_batch = std::max(0, which.micro_batch),
          .stream = stream,
          .piece = {which.piece, pieces_of(which.phase, which.layer)}};
}

void InferenceRank::place(const StepPhase& which, const PhaseTasks& tasks) {
  PhaseTasks& placed = placed_[which] = tasks;
  if (first_ == kNoTask) first_ = tasks.first;
  before_last_ = last_;
  last_ = &placed;
}

void InferenceRank::append(const StepPhase& which, StreamName stream) {
  if (is_transfer(which.phase) && dispatcher_of(phases_.mode()).staged) {
    append_issue(which);
    append_receive(which);
    return;
  }
  place(which, rank_.append(prepared(which), place_of(which, stream)));
}

void InferenceRank::append_issue(const StepPhase& which) {
  place(which, rank_.append_issue(prepared(which), place_of(which, StreamName::compute)));
}

void InferenceRank::append_receive(const StepPhase& which) {
  const bool once = phases_.plan().receives_once(which.phase);
  if (once && which.piece + 1 < pieces_of(which.phase, which.layer)) return;
  std::vector<PhaseTasks*> issued;
  StepPhase each = which;
  for (each.piece = once ? 0 : which.piece; each.piece <= which.piece; ++each.piece)
    issued.push_back(&placed_.at(each));
  rank_.append_receive(prepared(which), place_of(which, StreamName::compute), issued);
}

void InferenceRank::append_whole(const std::string& phase, int layer) {
  const StepPhase which{part_.micro_batch, layer, phase};
  const PhaseTasks tasks = rank_.append(prepared(which), place_of(which, StreamName::compute));
  for (const auto& [other, before] : placed_) {
    if (other.layer == layer) rank_.order(before, tasks);
  }
  place(which, tasks);
}

void InferenceRank::chain() {
  if (before_last_ != nullptr) rank_.order(*before_last_, *last_);
}

// A piece of the one leads to the same piece of the other, where both have any.
void InferenceRank::connect(const StepPhase& which, const PhaseTasks& tasks, const PhaseDependency& dependency) {
  StepPhase after{which.micro_batch, which.layer + (dependency.next_layer ? 1 : 0), dependency.after};
  for (auto placed = placed_.find(after); placed != placed_.end(); placed = placed_.find(after)) {
    const bool piecewise = tasks.pieces > 1 && placed->second.pieces > 1;
    if (!piecewise || after.piece == which.piece) {
      rank_.order(tasks, placed->second);
      const bool meets_ranks = is_transfer(dependency.after) && !is_transfer(which.phase);
      if (meets_ranks) rank_.meet(tasks, placed->second);
    }
    ++after.piece;
  }
}

void InferenceRank::connect() {
  for (const auto& [which, tasks] : placed_) {
    for (const PhaseDependency& dependency : inference_dependencies(phases_.mode())) {
      if (dependency.before == which.phase) connect(which, tasks, dependency);
    }
  }
}

namespace {

// Nobody of the step launches it or waits for it. Null: there is none.
PreparedPhase* kv_transfer(ProgramDraft& program) {
  const Workload& workload = program.setup().scenario.workload;
  const double bytes = kv_transfer_MB(workload) * 1e6;
  if (bytes == 0) return nullptr;
  const Operator message = send(bytes, {.gpus = 2, .neighbour_nodes = 1});
  PreparedPhase& phase = program.prepare(kKvTransferPhase, {kernels::in(module_names::kMoveCaches, message)}, {});
  PreparedKernel& kernel = phase.kernels.front();
  keep_end(decode_of(workload) == nullptr, kernel);
  kernel.task.delay = Time::zero();
  kernel.launched_before = true;
  return &phase;
}

}  // namespace

Program inference_program(const Setup& setup, const InferenceShape& shape,
                          const std::function<void(InferenceRank&)>& append) {
  ProgramDraft program(setup, host_of(setup.scenario));
  InferencePhases phases(program, shape);
  PreparedPhase* const caches = kv_transfer(program);
  return on_every_rank(std::move(program), shape.plan.file, [&](RankProgram& rank) {
    InferenceRank step(phases, rank, {.blocks = phases.blocks(), .of_group = rank.rank()});
    append(step);
    step.connect();
    if (caches != nullptr) (void)rank.append(*caches, {.stream = StreamName::caches});
  });
}

}  // namespace moeline
