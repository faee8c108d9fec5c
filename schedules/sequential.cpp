// No overlap: every phase waits for the one before it, whatever its stream; but shared experts may run beside routed
// ones.
#include "schedules/lowering/every_rank.hpp"
#include "schedules/lowering/inference_step.hpp"
#include "schedules/lowering/training_passes.hpp"
#include "schedules/schedules.hpp"

namespace moeline {
namespace {

Program training(const Setup& setup) {
  ProgramDraft program(setup);
  TrainingPhases phases(program);
  const std::vector<Block> blocks = main_layers_alone(setup.model, setup.scenario.layers);
  return on_every_rank(std::move(program), "", [&](RankProgram& rank) {
    const PassTasks forward = append_pass(rank, phases, PassKind::forward, blocks, 0);
    const PassTasks backward = append_pass(rank, phases, PassKind::backward, blocks, 0);
    rank.order(forward.output, backward.input);
  });
}

Program inference(const Setup& setup) {
  const std::vector<std::string> dense = dense_phases(setup);
  const std::vector<std::string> moe = setup.layer_phases();
  const bool shared_beside = setup.scenario.shared_experts == SharedExperts::beside;
  return inference_program(setup, {.micro_batches = 1, .overlapped = false}, "", [&](InferenceRank& rank) {
    const auto append_layers = [&rank, shared_beside](const std::vector<std::string>& phases) {
      return [&rank, &phases, shared_beside](int first, int count) {
        for (int layer = first; layer < first + count; ++layer) {
          for (const std::string& phase : phases) {
            const bool beside = phase == "shared" && shared_beside;
            rank.append(phase, 0, layer, beside ? StreamName::side : stream_of(phase));
            beside ? rank.leave_running() : rank.chain();
          }
        }
      };
    };
    append_step(rank, append_layers(dense), append_layers(moe));
  });
}

}  // namespace

Program sequential(const Setup& setup) {
  return setup.scenario.phase() == WorkloadPhase::train ? training(setup) : inference(setup);
}

}  // namespace moeline
