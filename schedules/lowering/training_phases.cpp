#include "schedules/lowering/training_phases.hpp"

#include <algorithm>

namespace moeline {

const std::vector<std::string>& TrainingPhases::forward(BlockKind kind) const {
  return forward_phases(kind, sends_tokens(setup().scenario.comm.mode));
}

const std::vector<std::string>& TrainingPhases::backward(BlockKind kind) const {
  return backward_phases(kind, sends_tokens(setup().scenario.comm.mode));
}

int TrainingPhases::number_of(const Layer& content) {
  const auto found = std::find(contents_.begin(), contents_.end(), content);
  const auto number = static_cast<int>(found - contents_.begin());
  if (found == contents_.end()) contents_.push_back(content);
  return number;
}

PreparedPhase& TrainingPhases::at(const std::string& name, const Block& block, int rank) {
  const bool alike = !setup().experts_differ() && setup().scenario.routing.forward_rows.empty();
  const int content = number_of(block.content);
  const PhaseIdentity place{
      .phase = name, .kind = block.kind, .alike = content, .layer = alike ? 0 : block.layer, .rank = alike ? 0 : rank};
  return by_place_.get(place, [&]() -> PreparedPhase& {
    const LayerWork work = setup().block_work(name.ends_with("(F)"), block, rank);
    const bool own_traffic = is_transfer(name) && !setup().routed.empty();
    // Ranks whose rows fill as many tiles share kernels: the tokens behind the rows differ by less than a tile's.
    const double rows = name.starts_with("mlp") ? work.load.rows : 0;
    return prepared(
        {.phase = name, .kind = block.kind, .alike = content, .layer = own_traffic ? block.layer : 0, .rows = rows},
        work);
  });
}

PreparedPhase& TrainingPhases::prepared(const PhaseIdentity& identity, const LayerWork& work) {
  return by_rows_.get(identity, [&]() -> PreparedPhase& {
    const std::string& name = identity.phase;
    const bool side = std::find(side_.begin(), side_.end(), name) != side_.end();
    return program_.prepare(name, training_phase(name, work),
                            {.overlapped = overlapped_, .side_stream = side, .meetings = work.choices.by_megatron()});
  });
}

double TrainingPhases::wait_us(const std::string& name) const {
  const ExpectedWaits& waits = setup().waits;
  const auto& by_phase = overlapped_ ? waits.overlapped_us : waits.alone_us;
  const auto found = by_phase.find(name);
  return found == by_phase.end() ? 0 : found->second;
}

}  // namespace moeline
