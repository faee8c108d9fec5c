// DualPipe's F&B: a forward chunk and a backward chunk overlapped layer by layer (arXiv 2412.19437, figure 4).
//
//   compute        attn(F)   mlp(B)   mlp(W)   mlp(F)   attn(B)   attn(W)
//   communication  combine(B)   dispatch(F)   dispatch(B)   combine(F)
//
// The order on the streams comes from the overlap plan; what waits for what across them is the model's own data flow.
#include <fmt/format.h>

#include "schedules/overlap_plan.hpp"
#include "schedules/schedules.hpp"

namespace moeline {

Program dualpipe_chunk(const Setup& setup) {
  const Scenario& scenario = setup.scenario;
  const OverlapPlan plan = load_overlap_plan(scenario.schedule, scenario.overlap);
  RankProgram rank(setup, {.overlapped = true, .side_phases = plan.side});
  LayerPhases previous;
  for (int layer = 0; layer < scenario.layers; ++layer) {
    LayerPhases now;
    // Communication first: at equal start times the smaller id takes its SMs first.
    for (const std::string& phase : plan.communication) {
      now[phase] = rank.append(phase, layer, StreamName::communication);
    }
    for (const std::string& phase : plan.compute) now[phase] = rank.append(phase, layer, StreamName::compute);
    rank.data_edges(previous, now);
    if (scenario.launch == "stream") rank.host_edge(now["dispatch(F)"], now["mlp(W)"]);
    previous = std::move(now);
  }
  try {
    return std::move(rank).finish();
  } catch (const CycleError& error) {
    throw SpecError(plan.file, 0, fmt::format("this order cannot run: {}", error.what()));
  }
}

}  // namespace moeline
