// DualPipe's F&B: a forward chunk and a backward chunk overlapped layer by layer (arXiv 2412.19437, figure 4).
//
//   compute        attn(F)   mlp(B)   mlp(W)   mlp(F)   attn(B)   attn(W)
//   communication  combine(B)   dispatch(F)   dispatch(B)   combine(F)
//
// The order on the streams comes from the overlap plan; what waits for what across them is the model's own data flow.
#include "schedules/every_rank.hpp"
#include "schedules/overlap_plan.hpp"
#include "schedules/schedules.hpp"
#include "schedules/training_phases.hpp"

namespace moeline {

Program dualpipe_chunk(const Setup& setup) {
  const Scenario& scenario = setup.scenario;
  const OverlapPlan plan = load_overlap_plan(scenario.schedule, scenario.overlap,
                                             {.phases = training_phase_names(), .halved = {}, .absent = {}});
  ProgramDraft program(setup, {.overlapped = true, .side_phases = plan.side});
  TrainingPhases phases(program);
  return on_every_rank(std::move(program), plan.file, [&](RankProgram& rank) {
    LayerPhases previous;
    for (int layer = 0; layer < scenario.layers; ++layer) {
      LayerPhases now;
      const auto append = [&](const std::vector<PlanEntry>& entries, StreamName stream) {
        for (const PlanEntry& entry : entries) {
          now[entry.phase] = rank.append(phases.at(entry.phase, layer, rank.rank()), {layer, 0, stream});
        }
      };
      // Communication first: at equal start times the smaller id takes its SMs first.
      append(plan.communication, StreamName::communication);
      append(plan.compute, StreamName::compute);
      connect(rank, previous, now);
      if (scenario.launch == "stream") rank.host_edge(now["dispatch(F)"], now["mlp(W)"]);
      previous = std::move(now);
    }
  });
}

}  // namespace moeline
