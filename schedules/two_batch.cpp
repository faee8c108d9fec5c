// Two micro-batches on the same ranks: one computes while the tokens of the other travel (DeepSeek-V3's prefill and
// decode, arXiv 2412.19437, section 3.4; DeepSeek's published profiles of both). Prefill:
//
//   compute        ATTN1 SHARED0' ATTN0 MLP1 MLP0 SHARED1          ' of the layer before
//   communication  COMBINE0' DISPATCH1 DISPATCH0 COMBINE1
//
// In decode the kernels that issue and receive transfers run on the compute stream, and only the wire beside it. The
// orders come from the overlap plan; what waits for what is the model's own data flow.
#include "schedules/lowering/inference_step.hpp"
#include "schedules/scenario/overlap_plan.hpp"
#include "schedules/schedules.hpp"

namespace moeline {
namespace {

void append(const PlanEntry& entry, int layer, StreamName stream, InferenceRank& rank) {
  switch (entry.part) {
    case PlanEntry::Part::whole:
      return rank.append(entry.phase, entry.micro_batch, layer, stream);
    case PlanEntry::Part::issue:
      return rank.append_issue(entry.phase, entry.micro_batch, layer);
    case PlanEntry::Part::receive:
      return rank.append_receive(entry.phase, entry.micro_batch, layer);
  }
}

// One turn more on either side: what the plan has of a previous or next layer runs in, and out.
void append_moe_layers(const OverlapPlan& plan, int first, int count, InferenceRank& rank) {
  for (int turn = first - 1; turn <= first + count; ++turn) {
    const auto append_stream = [&](const std::vector<PlanEntry>& entries, StreamName stream) {
      for (const PlanEntry& entry : entries) {
        const int layer = turn + entry.layer_offset;
        if (layer >= first && layer < first + count) append(entry, layer, stream, rank);
      }
    };
    // Communication first: at equal start times the smaller id takes its SMs first.
    append_stream(plan.communication, StreamName::communication);
    append_stream(plan.compute, StreamName::compute);
  }
}

void append_dense_layers(const Setup& setup, int first, int count, InferenceRank& rank) {
  const int micro_batches = setup.scenario.kind().micro_batches;
  for (int layer = first; layer < first + count; ++layer) {
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      for (const std::string& phase : dense_phases(setup, rank.content(layer)))
        rank.append(phase, micro_batch, layer, StreamName::compute);
    }
  }
}

}  // namespace

PlanContents two_batch_contents(const Setup& setup) {
  PlanContents contents{.phases = setup.layer_phases(), .halved = {}, .absent = {}};
  contents.micro_batches = setup.scenario.kind().micro_batches;
  if (setup.scenario.phase() == WorkloadPhase::decode) contents.halved = {"dispatch", "combine"};
  if (setup.model.n_shared_experts == 0) contents.absent = {"shared"};
  return contents;
}

OverlapPlan two_batch_plan(const Setup& setup) {
  const Scenario& scenario = setup.scenario;
  if (scenario.plan) return *scenario.plan;
  return load_overlap_plan(scenario.schedule, scenario.overlap, two_batch_contents(setup));
}

Program two_batch(const Setup& setup) {
  const Scenario& scenario = setup.scenario;
  const OverlapPlan plan = two_batch_plan(setup);
  const InferenceShape shape{.micro_batches = scenario.kind().micro_batches, .overlapped = true};
  return inference_program(setup, shape, plan.file, [&](InferenceRank& rank) {
    append_step(
        rank, [&](int first, int count) { append_dense_layers(setup, first, count, rank); },
        [&](int first, int count) { append_moe_layers(plan, first, count, rank); });
  });
}

}  // namespace moeline
