// No overlap: every phase waits for the one before it, whatever its stream.
#include <array>

#include "schedules/schedules.hpp"

namespace moeline {
namespace {

constexpr std::array kForward = {"attn(F)", "dispatch(F)", "mlp(F)", "combine(F)"};
constexpr std::array kBackward = {"combine(B)", "mlp(B)", "mlp(W)", "dispatch(B)", "attn(B)", "attn(W)"};

StreamName stream_of(const std::string& phase) {
  const bool transfer = phase.starts_with("dispatch") || phase.starts_with("combine");
  return transfer ? StreamName::communication : StreamName::compute;
}

}  // namespace

Program sequential(const Setup& setup) {
  RankProgram rank(setup, {.overlapped = false, .side_phases = {}});
  const PhaseTasks* previous = nullptr;
  PhaseTasks now;
  const auto append_pass = [&](const auto& phases) {
    for (int layer = 0; layer < setup.scenario.layers; ++layer) {
      for (const char* phase : phases) {
        const PhaseTasks tasks = rank.append(phase, layer, stream_of(phase));
        if (previous != nullptr) rank.order(*previous, tasks);
        now = tasks;
        previous = &now;
      }
    }
  };
  append_pass(kForward);
  append_pass(kBackward);
  return std::move(rank).finish();
}

Program build_program(const Setup& setup) {
  return setup.scenario.schedule == "sequential" ? sequential(setup) : dualpipe_chunk(setup);
}

}  // namespace moeline
