// No overlap: every phase waits for the one before it, whatever its stream.
#include <array>
#include <optional>

#include "schedules/every_rank.hpp"
#include "schedules/schedules.hpp"
#include "schedules/step.hpp"
#include "schedules/training_phases.hpp"

namespace moeline {
namespace {

constexpr std::array kForward = {"attn(F)", "dispatch(F)", "mlp(F)", "combine(F)"};
constexpr std::array kBackward = {"combine(B)", "mlp(B)", "mlp(W)", "dispatch(B)", "attn(B)", "attn(W)"};

StreamName stream_of(const std::string& phase) {
  return is_transfer(phase) ? StreamName::communication : StreamName::compute;
}

void append_training(TrainingPhases& phases, int layers, RankProgram& rank) {
  std::optional<PhaseTasks> previous;
  const auto append_pass = [&](const auto& names) {
    LayerPhases layer_before;
    for (int layer = 0; layer < layers; ++layer) {
      LayerPhases now;
      for (const char* name : names) {
        const PhaseTasks tasks = now[name] =
            rank.append(phases.at(name, layer, rank.rank()), {layer, 0, stream_of(name)});
        if (previous) rank.order(*previous, tasks);
        previous = tasks;
      }
      connect(rank, layer_before, now);
      layer_before = std::move(now);
    }
  };
  append_pass(kForward);
  append_pass(kBackward);
}

Program training(const Setup& setup) {
  ProgramDraft program(setup, {.overlapped = false});
  TrainingPhases phases(program);
  return on_every_rank(std::move(program), "",
                       [&](RankProgram& rank) { append_training(phases, setup.scenario.layers, rank); });
}

Program inference(const Setup& setup) {
  const bool decode = setup.scenario.workload.phase == "decode";
  const std::vector<std::string> dense = dense_phases(setup);
  const std::vector<std::string> moe = inference_phases(setup.model, decode);
  return inference_program(setup, {.micro_batches = 1, .overlapped = false}, "", [&](InferenceRank& rank) {
    const auto append_layers = [&rank](const std::vector<std::string>& phases) {
      return [&rank, &phases](int first, int count) {
        for (int layer = first; layer < first + count; ++layer) {
          for (const std::string& phase : phases) {
            rank.append(phase, 0, layer, stream_of(phase));
            rank.chain();
          }
        }
      };
    };
    append_step(setup, rank, append_layers(dense), append_layers(moe));
  });
}

}  // namespace

Program sequential(const Setup& setup) {
  return setup.scenario.workload.phase == "train" ? training(setup) : inference(setup);
}

}  // namespace moeline
