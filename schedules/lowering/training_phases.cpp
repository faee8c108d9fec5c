#include "schedules/lowering/training_phases.hpp"

#include <algorithm>

namespace moeline {

PreparedPhase& TrainingPhases::at(const std::string& name, const Block& block, int rank) {
  const bool alike = !setup().experts_differ() && setup().scenario.routing.forward_rows.empty();
  const PhaseIdentity place{
      .phase = name, .kind = block.kind, .layer = alike ? 0 : block.layer, .rank = alike ? 0 : rank};
  return by_place_.get(place, [&]() -> PreparedPhase& {
    LayerWork work = setup().layer_work(name.ends_with("(F)"), block.layer, rank);
    work.kind = block.kind;
    const bool own_traffic = is_transfer(name) && !setup().routed.empty();
    // Ranks whose rows fill as many tiles share kernels: the tokens behind the rows differ by less than a tile's.
    const double rows = name.starts_with("mlp") ? work.load.rows : 0;
    return prepared({.phase = name, .kind = block.kind, .layer = own_traffic ? block.layer : 0, .rows = rows}, work);
  });
}

PreparedPhase& TrainingPhases::prepared(const PhaseIdentity& identity, const LayerWork& work) {
  return by_rows_.get(identity, [&]() -> PreparedPhase& {
    const std::string& name = identity.phase;
    const bool side = std::find(side_.begin(), side_.end(), name) != side_.end();
    return program_.prepare(name, training_phase(name, work), {.overlapped = overlapped_, .side_stream = side});
  });
}

double TrainingPhases::wait_us(const std::string& name) const {
  const ExpectedWaits& waits = setup().waits;
  const auto& by_phase = overlapped_ ? waits.overlapped_us : waits.alone_us;
  const auto found = by_phase.find(name);
  return found == by_phase.end() ? 0 : found->second;
}

}  // namespace moeline
