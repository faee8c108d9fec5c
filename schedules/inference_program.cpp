#include "schedules/inference_program.hpp"

#include <algorithm>

#include "schedules/every_rank.hpp"

namespace moeline {

bool InferencePhases::low_latency() const { return program_.setup().scenario.comm.mode == "low_latency"; }

// The first layer of the model with the same kernels. Beyond the last one are MTP modules, which are like it.
int InferencePhases::kind_of(int layer) const {
  const Architecture& model = program_.setup().model;
  if (!program_.setup().scenario.whole_model) layer = model.first_k_dense_replace + layer % model.moe_layers();
  layer = std::min(layer, model.num_hidden_layers - program_.setup().fold.left_out - 1);
  const bool dense = layer < model.first_k_dense_replace;
  for (int other = dense ? 0 : model.first_k_dense_replace; other < layer; ++other) {
    if (model.window(other) == model.window(layer)) return other;
  }
  return layer;
}

int InferencePhases::moe_layer_of(int layer) const {
  const Setup& setup = program_.setup();
  return std::max(0, layer - setup.first_moe_layer()) % setup.model.moe_layers();
}

// What ranks or layers have alike is prepared once.
PreparedPhase& InferencePhases::at(const std::string& phase, int micro_batch, int layer, int rank) {
  const Setup& setup = program_.setup();
  const int kind = kind_of(layer);
  const bool dense = kind < setup.model.first_k_dense_replace;
  const bool routes = is_transfer(phase) || (phase == "mlp" && !dense);
  const bool of_layer = routes && setup.experts_differ();
  const bool of_rank = setup.requests_differ() || (of_layer && !is_transfer(phase));
  const int moe_layer = moe_layer_of(layer);
  const auto [found, is_new] =
      prepared_.try_emplace({micro_batch, kind, of_layer ? moe_layer : 0, of_rank ? rank : 0, phase}, nullptr);
  if (!is_new) return *found->second;
  const InferenceWork work = micro_batch < 0 ? setup.inference_work(0, 1, moe_layer, rank)
                                             : setup.inference_work(micro_batch, shape_.micro_batches, moe_layer, rank);
  found->second = &program_.prepare(phase, inference_phase(phase, work, kind), {.overlapped = shape_.overlapped});
  return *found->second;
}

PreparedPhase& InferenceRank::prepared(const std::string& phase, int micro_batch, int layer) {
  return phases_.at(phase, micro_batch, layer, rank_.rank());
}

void InferenceRank::place(const std::string& phase, int micro_batch, int layer, const PhaseTasks& tasks) {
  PhaseTasks& placed = placed_[{micro_batch, layer, phase}] = tasks;
  before_last_ = last_;
  last_ = &placed;
}

void InferenceRank::append(const std::string& phase, int micro_batch, int layer, StreamName stream) {
  if (is_transfer(phase) && phases_.low_latency()) {
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
  const PhaseTasks tasks = rank_.append(prepared(phase, -1, layer), {layer, 0});
  for (const auto& [key, before] : placed_) {
    if (std::get<1>(key) == layer) rank_.order(before, tasks);
  }
  place(phase, -1, layer, tasks);
}

void InferenceRank::chain() {
  if (before_last_ != nullptr) rank_.order(*before_last_, *last_);
}

void InferenceRank::connect() {
  for (const auto& [key, tasks] : placed_) {
    const auto& [micro_batch, layer, phase] = key;
    for (const PhaseDependency& dependency : inference_dependencies()) {
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
  ProgramDraft program(setup, setup.scenario.launch == "stream");
  InferencePhases phases(program, shape);
  return on_every_rank(std::move(program), plan_file, [&](RankProgram& rank) {
    InferenceRank step(phases, rank);
    append(step);
    step.connect();
  });
}

}  // namespace moeline
