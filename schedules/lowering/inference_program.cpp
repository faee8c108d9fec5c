#include "schedules/lowering/inference_program.hpp"

#include <algorithm>

#include "schedules/lowering/every_rank.hpp"
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

PreparedPhase& InferencePhases::at(const std::string& phase, int micro_batch, int layer, int rank) {
  const Setup& setup = program_.setup();
  const auto number = static_cast<std::size_t>(layer);
  const Block& block = layers_[number];
  const bool computes = phase == "mlp" && block.kind == BlockKind::moe_layer;  // by its experts' rows
  const bool routes = is_transfer(phase) || computes;
  const bool of_layer = routes && setup.loads_differ();
  const bool of_rank = setup.requests_differ() || (of_layer && !is_transfer(phase));
  const int moe_layer = moe_layers_[number];
  const int experts = rank / setup.scenario.parallelism.moe_tp;  // ranks that share experts get the same rows
  const PhaseIdentity identity{.phase = phase,
                               .kind = block.kind,
                               .alike = alike_[number],
                               .micro_batch = micro_batch,
                               .layer = of_layer ? moe_layer : 0,
                               .rank = of_rank ? rank : 0,
                               .draw = computes ? setup.scatter_draw(std::max(0, micro_batch), moe_layer, experts) : 0};
  return prepared_.get(identity, [&]() -> PreparedPhase& {
    const bool whole = micro_batch < 0;
    const InferenceWork work =
        setup.inference_work(whole ? 0 : micro_batch, whole ? 1 : shape_.micro_batches, moe_layer, rank);
    return program_.prepare(phase, inference_phase(phase, work, block),
                            {.overlapped = shape_.overlapped, .meetings = true});
  });
}

PreparedPhase& InferenceRank::prepared(const std::string& phase, int micro_batch, int layer) {
  return phases_.at(phase, micro_batch, layer, part_.of_group);
}

void InferenceRank::place(const std::string& phase, int micro_batch, int layer, const PhaseTasks& tasks) {
  PhaseTasks& placed = placed_[{micro_batch, layer, phase}] = tasks;
  if (first_ == kNoTask) first_ = tasks.first;
  before_last_ = last_;
  last_ = &placed;
}

void InferenceRank::append(const std::string& phase, int micro_batch, int layer, StreamName stream) {
  if (is_transfer(phase) && phases_.mode() == CommMode::low_latency) {
    append_issue(phase, micro_batch, layer);
    append_receive(phase, micro_batch, layer);
    return;
  }
  place(phase, micro_batch, layer, rank_.append(prepared(phase, micro_batch, layer), {layer, micro_batch, stream}));
}

void InferenceRank::append_issue(const std::string& phase, int micro_batch, int layer) {
  place(phase, micro_batch, layer, rank_.append_issue(prepared(phase, micro_batch, layer), {layer, micro_batch}));
}

void InferenceRank::append_receive(const std::string& phase, int micro_batch, int layer) {
  rank_.append_receive(prepared(phase, micro_batch, layer), {layer, micro_batch},
                       placed_.at({micro_batch, layer, phase}));
}

void InferenceRank::append_whole(const std::string& phase, int layer) {
  const int micro_batch = part_.micro_batch;
  const PhaseTasks tasks = rank_.append(prepared(phase, micro_batch, layer), {layer, std::max(0, micro_batch)});
  for (const auto& [key, before] : placed_) {
    if (std::get<1>(key) == layer) rank_.order(before, tasks);
  }
  place(phase, micro_batch, layer, tasks);
}

void InferenceRank::chain() {
  if (before_last_ != nullptr) rank_.order(*before_last_, *last_);
}

void InferenceRank::connect() {
  for (const auto& [key, tasks] : placed_) {
    const auto& [micro_batch, layer, phase] = key;
    for (const PhaseDependency& dependency : inference_dependencies(phases_.mode())) {
      if (dependency.before != phase) continue;
      const auto after = placed_.find({micro_batch, layer + (dependency.next_layer ? 1 : 0), dependency.after});
      if (after == placed_.end()) continue;
      rank_.order(tasks, after->second);
      const bool meets_ranks = is_transfer(dependency.after) && !is_transfer(phase);
      if (meets_ranks) rank_.meet(tasks, after->second);
    }
  }
}

Program inference_program(const Setup& setup, const InferenceShape& shape, const std::string& plan_file,
                          const std::function<void(InferenceRank&)>& append) {
  ProgramDraft program(setup, host_of(setup.scenario));
  InferencePhases phases(program, shape);
  return on_every_rank(std::move(program), plan_file, [&](RankProgram& rank) {
    InferenceRank step(phases, rank, {.blocks = phases.blocks(), .of_group = rank.rank()});
    append(step);
    step.connect();
  });
}

}  // namespace moeline
