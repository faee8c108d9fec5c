// DualPipe's F&B: a forward chunk and a backward chunk overlapped layer by layer (arXiv 2412.19437, figure 4).
//
//   compute        attn(F)   mlp(B)   mlp(W)   mlp(F)   attn(B)   attn(W)
//   communication  combine(B)   dispatch(F)   dispatch(B)   combine(F)
//
// The order on the streams comes from the overlap plan; what waits for what across them is the model's own data flow.
#include "schedules/every_rank.hpp"
#include "schedules/schedules.hpp"
#include "schedules/training_passes.hpp"

namespace moeline {

Program dualpipe_chunk(const Setup& setup) {
  const OverlapPlan plan = load_training_plan(setup.scenario.overlap);
  ProgramDraft program(setup);
  TrainingPhases phases(program, plan.side);
  std::vector<Block> blocks;
  for (int layer = 0; layer < setup.scenario.layers; ++layer) blocks.push_back({BlockKind::moe_layer, layer});
  return on_every_rank(std::move(program), plan.file, [&](RankProgram& rank) {
    (void)append_overlapped(rank, phases, plan, {.forward = blocks, .backward = blocks});
  });
}

}  // namespace moeline
