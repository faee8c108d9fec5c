#include "experiments/search_pipeline/least_step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "schedules/lowering/training_passes.hpp"
#include "schedules/pipeline/pipelines.hpp"

namespace moeline {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

double least_us(const PreparedKernel& kernel) { return to_us(kernel.task.solo + kernel.task.delay); }

// A pass that runs alone does one kernel after the other, transfers too; of overlapped ones the compute stream does,
// but for what it may leave to the side stream.
double phase_ms(const PreparedPhase& phase, bool overlapped) {
  if (overlapped && is_transfer(phase.name)) return 0;
  double us = 0;
  for (const PreparedKernel& kernel : phase.kernels) {
    const bool shared = phase.side_stream && kernel.parallel;
    if (!kernel.beside) us += least_us(kernel) / (shared ? 2 : 1);
  }
  return us / 1e3;
}

// Of the micro-batch that has fewest tokens.
double phases_ms(TrainingPhases& phases, const std::vector<std::string>& names, const Block& block, bool overlapped) {
  const std::vector<int>& lengths = as_train(phases.setup().scenario.workload).seq_lens;
  const auto shortest = static_cast<int>(std::min_element(lengths.begin(), lengths.end()) - lengths.begin());
  return std::accumulate(names.begin(), names.end(), 0.0, [&](double sum, const std::string& name) {
    return sum + phase_ms(phases.at(name, block, 0, lengths.empty() ? 0 : shortest), overlapped);
  });
}

}  // namespace

LeastStep::LeastStep(const Setup& setup) : blocks_(training_blocks(setup.scenario, setup.model)) {
  ProgramDraft draft(setup);
  TrainingPhases alone(draft), beside(draft, training_plan(setup.scenario));
  for (const Block& block : blocks_) {
    const auto &forward_names = alone.forward(block.kind), &backward_names = alone.backward(block.kind);
    const auto& weight_names = weight_phases(block.kind);
    block_ms_.push_back(
        {phases_ms(alone, forward_names, block, false), phases_ms(alone, backward_names, block, false),
         phases_ms(alone, weight_names, block, false), phases_ms(beside, forward_names, block, true),
         phases_ms(beside, backward_names, block, true) + phases_ms(beside, weight_names, block, true)});
  }
  weights_apart_ = setup.scenario.kind().pipeline->splits_backward;
  count_passes(setup);
  set_floor();
}

void LeastStep::count_passes(const Setup& setup) {
  const bool overlaps = overlaps_passes(setup.scenario);
  for (const RankSlots& slots : pipeline_slots(setup.scenario)) {
    std::vector<Passes>& of_rank = counts_.emplace_back(static_cast<std::size_t>(stage_count(setup.scenario)));
    for (const Slot& slot : slots) {
      const bool together = overlaps && slot.kind == SlotKind::forward_backward;
      Passes& out = of_rank[static_cast<std::size_t>(slot.forward.stage)];
      Passes& back = of_rank[static_cast<std::size_t>(slot.backward.stage)];
      if (has_forward(slot.kind)) ++out[together ? overlapped_forward : forward];
      if (together) ++back[overlapped_backward];
      if (!together && has_backward(slot.kind)) ++back[backward];
      if (!together && has_weight(slot.kind)) ++back[weight];
    }
  }
}

double LeastStep::product(const Passes& counts, const Passes& ms) {
  return std::inner_product(counts.begin(), counts.end(), ms.begin(), 0.0);
}

// A block costs what it does on the stage where that is least, on the ranks that hold it. Some rank has as many layers
// as their mean, rounded up.
void LeastStep::set_floor() {
  const auto ranks = static_cast<double>(counts_.size());
  const std::size_t stages = counts_.front().size();
  double all_ms = 0, cheapest_ms = kUnbounded, held = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    double least_ms = kUnbounded, fewest = kUnbounded;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      double ms = 0, copies = 0;
      for (const std::vector<Passes>& of_rank : counts_) {
        const double on_rank_ms = product(of_rank[stage], block_ms_[i]);
        ms += on_rank_ms;
        copies += on_rank_ms > 0 ? 1 : 0;
        if (on_rank_ms > 0 && is_layer(blocks_[i].kind)) cheapest_ms = std::min(cheapest_ms, on_rank_ms);
      }
      least_ms = std::min(least_ms, ms);
      fewest = std::min(fewest, copies);
    }
    all_ms += least_ms;
    if (is_layer(blocks_[i].kind)) held += fewest;
  }
  floor_ms_ = std::max(all_ms / ranks, std::ceil(held / ranks) * cheapest_ms);
}

double LeastStep::ms(const Partition& partition) const {
  std::vector<Passes> stage_ms;
  std::size_t block = 0;
  for (const StageBlocks& stage : given_stages(blocks_, partition)) {
    Passes& sum = stage_ms.emplace_back();
    for (std::size_t i = 0; i < stage.size(); ++i, ++block) {
      for (std::size_t pass = 0; pass < sum.size(); ++pass) sum[pass] += block_ms_[block][pass];
    }
  }
  double most = 0;
  for (const std::vector<Passes>& of_rank : counts_) most = std::max(most, rank_ms(of_rank, stage_ms));
  return most;
}

// A rank begins once the first micro-batch has come through the stages before its own. What it gives back last goes
// through them again, beside gradients of weights that it may have put off.
double LeastStep::rank_ms(const std::vector<Passes>& counts, const std::vector<Passes>& stage_ms) const {
  double to_rank_ms = 0, from_rank_ms = 0, work_ms = 0, put_off_ms = 0, last_ms = 0;
  bool reached = false;
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    const double here_ms = product(counts[stage], stage_ms[stage]);
    reached = reached || here_ms > 0;
    if (!reached) {
      to_rank_ms += stage_ms[stage][forward];
      from_rank_ms += stage_ms[stage][backward];
    }
    work_ms += here_ms;
    if (here_ms == 0) continue;
    put_off_ms += weights_apart_ ? counts[stage][weight] * stage_ms[stage][weight] : 0;
    last_ms = std::max(last_ms, stage_ms[stage][weight]);
  }
  return to_rank_ms + std::max(work_ms, work_ms - put_off_ms - last_ms + from_rank_ms);
}

}  // namespace moeline
