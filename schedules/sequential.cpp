// No overlap: every phase waits for the one before it, whatever its stream.
#include <array>
#include <optional>

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

Program training(const Setup& setup) {
  RankProgram rank(setup, {.overlapped = false});
  TrainingPhases phases(setup, rank);
  std::optional<PhaseTasks> previous;
  const auto append_pass = [&](const auto& names) {
    LayerPhases layer_before;
    for (int layer = 0; layer < setup.scenario.layers; ++layer) {
      LayerPhases now;
      for (const char* name : names) {
        const PhaseTasks tasks = now[name] = rank.append(phases.at(name, layer), {layer, 0, stream_of(name)});
        if (previous) rank.order(*previous, tasks);
        previous = tasks;
      }
      phases.connect(layer_before, now);
      layer_before = std::move(now);
    }
  };
  append_pass(kForward);
  append_pass(kBackward);
  return std::move(rank).finish();
}

Program inference(const Setup& setup) {
  InferenceProgram program(setup, 1, false);
  const auto append_layers = [&](const std::vector<std::string>& phases) {
    return [&program, phases](int first, int count) {
      for (int layer = first; layer < first + count; ++layer) {
        for (const std::string& phase : phases) {
          program.append(phase, 0, layer, stream_of(phase));
          program.chain();
        }
      }
    };
  };
  const bool decode = setup.scenario.workload.phase == "decode";
  append_step(setup, program, append_layers(dense_phases(setup)), append_layers(inference_phases(setup.model, decode)));
  return std::move(program).finish().finish();
}

}  // namespace

Program sequential(const Setup& setup) {
  return setup.scenario.workload.phase == "train" ? training(setup) : inference(setup);
}

}  // namespace moeline
