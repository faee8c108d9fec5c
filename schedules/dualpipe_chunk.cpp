// DualPipe's F&B: a forward chunk and a backward chunk overlapped layer by layer (arXiv 2412.19437, figure 4).
//
//   compute        attn(F)   mlp(B)   mlp(W)   mlp(F)   attn(B)   attn(W)
//   communication  combine(B)   dispatch(F)   dispatch(B)   combine(F)
//
// The order on the streams comes from the overlap plan; what waits for what across them is the model's own data flow.
#include "schedules/lowering/rank_program.hpp"
#include "schedules/lowering/training_passes.hpp"
#include "schedules/schedules.hpp"

namespace moeline {

Program dualpipe_chunk(const Setup& setup) {
  const OverlapPlan plan = training_plan(setup.scenario);
  ProgramDraft program(setup, host_of(setup.scenario));
  TrainingPhases phases(program, plan);
  const std::vector<Block> blocks = main_layers_alone(setup.model, setup.scenario.layers);
  return on_every_rank(std::move(program), plan.file, [&](RankProgram& rank) {
    (void)append_overlapped(rank, phases, plan, {.forward = blocks, .backward = blocks});
  });
}

}  // namespace moeline
