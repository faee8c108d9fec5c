#include "experiments/run/slot_level.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/simulate.hpp"
#include "moe/module_names.hpp"
#include "schedules/pipeline/stages.hpp"

namespace moeline {
namespace {

Time scaled(Time time, double times) { return from_us(times * to_us(time)); }

// Layers with windows and without take turns in some models.
std::string described(const StageBlocks& blocks) {
  std::string text = describe(blocks);
  for (const Block& block : blocks) text += fmt::format(" {}", block.content.attention.window);
  return text;
}

std::vector<StageBlocks> stages_of(const Setup& setup) {
  ProgramDraft draft(setup);
  TrainingPhases phases(draft);
  return moeline::stages_of(phases);
}

}  // namespace

SlotKinds::SlotKinds(const Setup& setup) : setup_(setup) {
  if (setup.scenario.level != Level::by_slot) return;
  stages_ = stages_of(setup);
  for (const StageBlocks& blocks : stages_) described_.push_back(described(blocks));
}

// A rank is as slow as the slowest GPU of its group.
Setup SlotKinds::setup_of(int rank) const {
  Setup alone = setup_;
  if (!alone.variation.slowness.empty()) alone.variation.slowness = {setup_.slowness(rank)};
  return alone;
}

std::string SlotKinds::key_of(const Slot& slot, int rank) const {
  const auto stage = [&](const Pass& pass) { return described_.at(static_cast<std::size_t>(pass.stage)); };
  const TrainWorkload& w = as_train(setup_.scenario.workload);
  const std::string lengths = w.seq_lens.empty() ? ""
                                                 : fmt::format("{} {} ", seq_len_of(w, slot.forward.micro_batch),
                                                               seq_len_of(w, slot.backward.micro_batch));
  const std::string forward = has_forward(slot.kind) ? stage(slot.forward) : "";
  const std::string backward = slot.kind == SlotKind::forward ? "" : stage(slot.backward);
  return lengths + fmt::format("{} {} {} / {}", setup_.variation.slowness.empty() ? 0 : rank,
                               static_cast<int>(slot.kind), forward, backward);
}

SlotTiming SlotKinds::timing_of(const Slot& slot, int rank) {
  const std::string key = key_of(slot, rank);
  auto found = kinds_.find(key);
  if (found == kinds_.end()) {
    const Setup setup = setup_of(rank);
    auto [program, layout] = slot_alone(setup, slot, stages_);
    const Timeline timeline = simulate(program.graph);
    const ProgramSlot& alone = layout.slots.front();
    const auto end_of_pass = [&](TaskId out) { return out == kNoTask ? Time::zero() : timeline.spans[out].end; };
    const SlotTiming timing{timeline.makespan, end_of_pass(alone.forward_out), end_of_pass(alone.backward_out)};
    const Metrics metrics = measure(program.graph, timeline);
    ModuleUses modules = module_uses(setup, program, timeline);
    found = kinds_.emplace(key, Kind{std::move(program), timing, metrics, std::move(modules)}).first;
  }
  ++found->second.slots;
  return found->second.timing;
}

void SlotKinds::add_operators(Program& program) const {
  for (const auto& [key, kind] : kinds_) {
    const double times = kind.slots / program.ranks;
    for (const ProvenanceUse& use : kind.program.provenance) {
      if (use.family != Family::send) add_use(use, times, program.provenance);  // the step has its own sends
    }
    program.constants |= kind.program.constants;
    program.model_flops += times * kind.program.model_flops;
    program.lumped_us += times * kind.program.lumped_us;
    program.gaps_us += times * kind.program.gaps_us;
    program.waits_us += times * kind.program.waits_us;
  }
}

Metrics SlotKinds::metrics(Time step) const {
  Metrics sum;
  sum.span = step;
  const int ranks = setup_.scenario.parallelism.pp;
  for (const auto& [key, kind] : kinds_) {
    const double times = kind.slots / ranks;
    sum.compute_busy += scaled(kind.metrics.compute_busy, times);
    sum.comm_busy += scaled(kind.metrics.comm_busy, times);
    sum.exposed_comm += scaled(kind.metrics.exposed_comm, times);
    sum.sm_use += times * kind.metrics.sm_use * ratio(kind.metrics.span, step);
  }
  sum.idle = std::max(Time::zero(), step - sum.compute_busy - sum.exposed_comm);
  return sum;
}

ModuleUses SlotKinds::modules() const {
  ModuleUses sum;
  for (const auto& [key, kind] : kinds_) add(kind.modules, kind.slots / setup_.scenario.parallelism.pp, sum);
  sum.erase(module_names::kSendActivations);
  sum.erase(module_names::kSendGradients);
  return sum;
}

}  // namespace moeline
