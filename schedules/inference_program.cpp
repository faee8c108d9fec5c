#include "schedules/inference_program.hpp"

#include <algorithm>
#include <cmath>

#include "schedules/skew.hpp"

namespace moeline {

InferenceProgram::InferenceProgram(const Setup& setup, int micro_batches, bool overlapped)
    : setup_(setup),
      whole_(setup.inference_work(0, 1)),
      slowest_(expected_maximum(setup.scenario.parallelism.ep)),
      rank_(setup, {.overlapped = overlapped, .eager = setup.scenario.launch == "stream"}) {
  for (int i = 0; i < micro_batches; ++i) work_.push_back(setup.inference_work(i, micro_batches));
}

// The first layer of the model with the same kernels. Beyond the last one are MTP modules, which are like it.
int InferenceProgram::kind_of(int layer) const {
  const Architecture& model = setup_.model;
  if (!setup_.scenario.whole_model) layer = model.first_k_dense_replace + layer % model.moe_layers();
  layer = std::min(layer, model.num_hidden_layers - 1);
  const bool dense = layer < model.first_k_dense_replace;
  for (int other = dense ? 0 : model.first_k_dense_replace; other < layer; ++other) {
    if (model.window(other) == model.window(layer)) return other;
  }
  return layer;
}

const PreparedPhase& InferenceProgram::prepared(const std::string& phase, int micro_batch, int layer) {
  const int kind = kind_of(layer);
  const Key key{micro_batch, kind, phase};
  const auto found = prepared_.find(key);
  if (found != prepared_.end()) return found->second;
  const InferenceWork& work = micro_batch < 0 ? whole_ : work_[static_cast<std::size_t>(micro_batch)];
  double wait_us = 0;
  if (is_transfer(phase)) {
    wait_us = slowest_ * std::sqrt(upstream_variance(phase, micro_batch, layer));
  }
  return prepared_.emplace(key, rank_.prepare(phase, inference_phase(phase, work, kind), wait_us)).first->second;
}

// Of the work on the data's way since the barrier before.
double InferenceProgram::upstream_variance(const std::string& phase, int micro_batch, int layer) {
  const std::vector<std::string> phases = inference_phases(setup_.model, work_.front().decode);
  double variance = 0;
  for (const PhaseDependency& dependency : inference_dependencies()) {
    const bool here = std::find(phases.begin(), phases.end(), dependency.before) != phases.end();
    if (dependency.after != phase || dependency.next_layer || !here || is_transfer(dependency.before)) continue;
    variance += prepared(dependency.before, micro_batch, layer).variance_us2 +
                upstream_variance(dependency.before, micro_batch, layer);
  }
  return variance;
}

void InferenceProgram::place(const std::string& phase, int micro_batch, int layer, const PhaseTasks& tasks) {
  PhaseTasks& placed = placed_[{micro_batch, layer, phase}] = tasks;
  before_last_ = last_;
  last_ = &placed;
}

void InferenceProgram::append(const std::string& phase, int micro_batch, int layer, StreamName stream) {
  if (is_transfer(phase) && work_.front().low_latency) {
    append_issue(phase, micro_batch, layer);
    append_receive(phase, micro_batch, layer);
    return;
  }
  place(phase, micro_batch, layer, rank_.append(prepared(phase, micro_batch, layer), {layer, micro_batch, stream}));
}

void InferenceProgram::append_issue(const std::string& phase, int micro_batch, int layer) {
  place(phase, micro_batch, layer, rank_.append_issue(prepared(phase, micro_batch, layer), {layer, micro_batch}));
}

void InferenceProgram::append_receive(const std::string& phase, int micro_batch, int layer) {
  rank_.append_receive(prepared(phase, micro_batch, layer), {layer, micro_batch},
                       placed_.at({micro_batch, layer, phase}));
}

void InferenceProgram::append_whole(const std::string& phase, int layer) {
  const PhaseTasks tasks = rank_.append(prepared(phase, -1, layer), {layer, 0});
  for (const auto& [key, before] : placed_) {
    if (std::get<1>(key) == layer) rank_.order(before, tasks);
  }
  place(phase, -1, layer, tasks);
}

void InferenceProgram::chain() {
  if (before_last_ != nullptr) rank_.order(*before_last_, *last_);
}

void InferenceProgram::connect() {
  for (const auto& [key, tasks] : placed_) {
    const auto& [micro_batch, layer, phase] = key;
    for (const PhaseDependency& dependency : inference_dependencies()) {
      if (dependency.before != phase) continue;
      const auto after = placed_.find({micro_batch, layer + (dependency.next_layer ? 1 : 0), dependency.after});
      if (after != placed_.end()) rank_.connect(dependency, tasks, after->second);
    }
  }
}

RankProgram InferenceProgram::finish() && {
  connect();
  return std::move(rank_);
}

}  // namespace moeline
