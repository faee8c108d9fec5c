// No overlap: every phase waits for the one before it, whatever its stream; but shared experts may run beside routed
// ones.
#include "schedules/lowering/inference_step.hpp"
#include "schedules/lowering/rank_program.hpp"
#include "schedules/lowering/training_passes.hpp"
#include "schedules/schedules.hpp"

namespace moeline {
namespace {

Program training(const Setup& setup) {
  ProgramDraft program(setup, host_of(setup.scenario));
  TrainingPhases phases(program);
  const std::vector<Block> blocks = main_layers_alone(setup.model, setup.scenario.layers);
  return on_every_rank(std::move(program), "", [&](RankProgram& rank) {
    const PassTasks forward = append_pass(rank, phases, PassKind::forward, blocks, 0);
    const PassTasks backward = append_pass(rank, phases, PassKind::backward, blocks, 0);
    rank.order(forward.output, backward.input);
  });
}

Program inference(const Setup& setup) {
  return inference_program(setup, {.micro_batches = 1, .overlapped = false},
                           [&](InferenceRank& rank) { append_in_turn(rank, setup, 0); });
}

}  // namespace

Program sequential(const Setup& setup) {
  return setup.scenario.phase() == WorkloadPhase::train ? training(setup) : inference(setup);
}

}  // namespace moeline
