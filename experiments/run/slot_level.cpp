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

SlotKinds::SlotKinds(const Setup& setup) : setup_(setup), mean_(setup) {
  if (setup.scenario.level != Level::by_slot) return;
  mean_.variation.slowness.clear();
  stages_ = stages_of(setup);
  for (const StageBlocks& blocks : stages_) described_.push_back(described(blocks));
}

std::string SlotKinds::key_of(const Slot& slot) const {
  const auto stage = [&](const Pass& pass) { return described_.at(static_cast<std::size_t>(pass.stage)); };
  const TrainWorkload& w = as_train(setup_.scenario.workload);
  const std::string forward = has_forward(slot.kind) ? stage(slot.forward) : "";
  const std::string backward = slot.kind == SlotKind::forward ? "" : stage(slot.backward);
  return fmt::format("{} {} {} {} / {}", seq_len_of(w, slot.forward.micro_batch),
                     seq_len_of(w, slot.backward.micro_batch), static_cast<int>(slot.kind), forward, backward);
}

SlotKinds::Slots& SlotKinds::slots_like(const Slot& slot, const std::string& key) {
  const auto found = slots_.find(key);
  if (found != slots_.end()) return found->second;
  auto [program, layout] = slot_alone(mean_, slot, stages_);
  std::vector<Time> solo;
  for (TaskId task = 0; task < program.graph.size(); ++task) solo.push_back(program.graph.task(task).solo);
  return slots_.emplace(key, Slots{std::move(program), layout.slots.front(), std::move(solo)}).first->second;
}

// A rank is as slow as the slowest GPU of its group.
SlotKinds::RankSlots SlotKinds::run(Slots& slots, int rank) const {
  auto& [program, slot, mean_solo] = slots;
  const double slowness = setup_.slowness(rank);
  for (TaskId task = 0; task < program.traits.size(); ++task) {
    const double factor = program.traits[task].lengthened(slowness);
    program.graph.set_solo(task, factor == 1 ? mean_solo[task] : scaled(mean_solo[task], factor));
  }
  const Timeline timeline = simulate(program.graph);
  const auto end_of_pass = [&](TaskId out) { return out == kNoTask ? Time::zero() : timeline.spans[out].end; };
  return {.program = &program,
          .timing = {timeline.makespan, end_of_pass(slot.forward_out), end_of_pass(slot.backward_out)},
          .metrics = measure(program.graph, timeline),
          .modules = module_uses(mean_, program, timeline)};
}

SlotTiming SlotKinds::timing_of(const Slot& slot, int rank) {
  const std::string key = key_of(slot);
  const int of_rank = setup_.variation.slowness.empty() ? 0 : rank;
  auto found = kinds_.find({key, of_rank});
  if (found == kinds_.end()) {
    found = kinds_.emplace(std::pair{key, of_rank}, run(slots_like(slot, key), of_rank)).first;
  }
  ++found->second.count;
  return found->second.timing;
}

void SlotKinds::add_operators(Program& program) const {
  for (const auto& [key, kind] : kinds_) {
    const double times = kind.count / program.ranks;
    for (const ProvenanceUse& use : kind.program->provenance) {
      if (use.family != Family::send) add_use(use, times, program.provenance);  // the step has its own sends
    }
    program.constants |= kind.program->constants;
    program.model_flops += times * kind.program->model_flops;
    program.lumped_us += times * kind.program->lumped_us;
    program.gaps_us += times * kind.program->gaps_us;
    program.waits_us += times * kind.program->waits_us;
  }
}

Metrics SlotKinds::metrics(Time step) const {
  Metrics sum;
  sum.span = step;
  const int ranks = setup_.scenario.parallelism.pp;
  for (const auto& [key, kind] : kinds_) {
    const double times = kind.count / ranks;
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
  for (const auto& [key, kind] : kinds_) add(kind.modules, kind.count / setup_.scenario.parallelism.pp, sum);
  sum.erase(module_names::kSendActivations);
  sum.erase(module_names::kSendGradients);
  return sum;
}

}  // namespace moeline
