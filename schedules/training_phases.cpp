#include "schedules/training_phases.hpp"

#include <algorithm>

namespace moeline {

PreparedPhase& TrainingPhases::at(const std::string& name, const Block& block, int rank) {
  const bool alike = !setup().experts_differ() && setup().scenario.routing.forward_rows.empty();
  const Key place{name, block.kind, alike ? 0 : block.layer, alike ? 0 : rank, 0};
  const auto [found, is_new] = by_place_.try_emplace(place, nullptr);
  if (!is_new) return *found->second;
  LayerWork work = setup().layer_work(name.ends_with("(F)"), block.layer, rank);
  work.kind = block.kind;
  const bool own_traffic = is_transfer(name) && !setup().routed.empty();
  // Ranks whose rows fill as many tiles share kernels: the tokens behind the rows differ by less than a tile's.
  const double rows = name.starts_with("mlp") ? work.load.rows : 0;
  found->second = &prepared({name, block.kind, own_traffic ? block.layer : 0, 0, rows}, work);
  return *found->second;
}

PreparedPhase& TrainingPhases::prepared(Key key, const LayerWork& work) {
  const auto [found, is_new] = by_rows_.try_emplace(std::move(key), nullptr);
  if (!is_new) return *found->second;
  const std::string& name = found->first.name;
  const bool side = std::find(side_.begin(), side_.end(), name) != side_.end();
  found->second = &program_.prepare(name, training_phase(name, work), {.overlapped = overlapped_, .side_stream = side});
  return *found->second;
}

double TrainingPhases::wait_us(const std::string& name) const {
  const ExpectedWaits& waits = setup().waits;
  const auto& by_phase = overlapped_ ? waits.overlapped_us : waits.alone_us;
  const auto found = by_phase.find(name);
  return found == by_phase.end() ? 0 : found->second;
}

}  // namespace moeline
