#include "experiments/run/shapes.hpp"

#include <algorithm>
#include <set>

#include "moe/inference.hpp"
#include "schedules/lowering/inference_step.hpp"
#include "schedules/lowering/rank_program.hpp"

namespace moeline {
namespace {

bool is_training(const Setup& setup) { return setup.scenario.phase() == WorkloadPhase::train; }

std::vector<std::string> phases_of(const Setup& setup) {
  if (is_training(setup)) return training_phase_names();
  return setup.layer_phases();
}

KernelClass class_of(Family family) { return class_named(row_of(family).task_class).value(); }

// Layers whose rows the scenario gives; of any number where it has none.
bool knows_layer(const Setup& setup, std::uint32_t layer) {
  const std::size_t given = setup.scenario.routing.forward_rows.size();
  return !is_training(setup) || given == 0 || layer < given;
}

}  // namespace

void add_work(const Operator& op, ClassShapes& shapes) {
  shapes.flops[static_cast<std::size_t>(row_of(op.family).precision)] += op.flops;
  if (!is_communication(op.family)) shapes.bytes += op.bytes;
}

Shapes no_shapes() {
  Shapes shapes{std::vector<ClassShapes>(kKernelClasses), {}};
  for (std::size_t c = 0; c < shapes.classes.size(); ++c) shapes.classes[c].kernel_class = static_cast<KernelClass>(c);
  return shapes;
}

bool has_phase_of(const Setup& setup, const std::vector<PhaseTimes>& phases) {
  const TracedStep step = traced_step(setup, phases);
  return std::any_of(phases.begin(), phases.end(),
                     [&](const PhaseTimes& phase) { return !operators_of(setup, phase, step).empty(); });
}

TracedStep traced_step(const Setup& setup, const std::vector<PhaseTimes>& phases) {
  std::set<std::uint32_t> micro_batches;
  for (const PhaseTimes& phase : phases) micro_batches.insert(phase.micro_batch);
  TracedStep step{.micro_batches = static_cast<int>(micro_batches.size())};
  if (!is_training(setup) && !setup.scenario.kind().plan.empty()) step.plan = inference_plan(setup);
  return step;
}

std::vector<Operator> operators_of(const Setup& setup, const PhaseTimes& phase, const TracedStep& step) {
  const std::vector<std::string> known = phases_of(setup);
  const bool has_phase = std::find(known.begin(), known.end(), phase.phase) != known.end();
  if (!has_phase || !knows_layer(setup, phase.layer)) return {};
  const int layer = static_cast<int>(phase.layer);
  if (is_training(setup)) return training_phase(phase.phase, setup.layer_work(phase.phase.ends_with("(F)"), layer));
  const Architecture& model = setup.model;
  const Block block =
      layer_of(model, setup.scenario.whole_model ? layer : model.first_main_layer() + layer % model.main_layers());
  InferenceWork work = setup.inference_work({static_cast<int>(phase.micro_batch), step.micro_batches, step.plan.split});
  work.core_first = step.plan.core_first();
  return inference_phase(phase.phase, work, block);
}

Shapes shapes_of(const Setup& setup, const std::vector<PhaseTimes>& phases) {
  const TracedStep step = traced_step(setup, phases);
  Shapes shapes = no_shapes();
  bool any = false;
  for (const PhaseTimes& phase : phases) {
    const std::vector<Operator> ops = operators_of(setup, phase, step);
    if (ops.empty()) continue;
    any = true;
    double& wire_bytes = shapes.wire_bytes[key_of(phase)];
    for (const Operator& op : ops) {
      add_work(op, shapes.classes[static_cast<std::size_t>(class_of(op.family))]);
      wire_bytes += op.traffic.wire_bytes;
    }
  }
  if (!any) throw SpecError(setup.scenario.file, 0, "has no phase in common with the trace");
  return shapes;
}

}  // namespace moeline
