#include "schedules/training_phases.hpp"

namespace moeline {

PreparedPhase& TrainingPhases::at(const std::string& name, int layer, int rank) {
  const Setup& setup = program_.setup();
  const LayerWork work = setup.layer_work(name.ends_with("(F)"), layer, rank);
  const bool own_traffic = is_transfer(name) && !setup.routed.empty();
  // Ranks whose rows fill as many tiles share kernels: the tokens behind the rows differ by less than a tile's.
  const double rows = name.starts_with("mlp") ? work.load.rows : 0;
  const auto [found, is_new] = prepared_.try_emplace({name, rows, own_traffic ? layer : 0}, nullptr);
  if (is_new) found->second = &program_.prepare(name, training_phase(name, work));
  return *found->second;
}

void connect(RankProgram& rank, const LayerPhases& previous, const LayerPhases& now) {
  for (const PhaseDependency& dependency : training_dependencies()) {
    const LayerPhases& source = dependency.next_layer ? previous : now;
    const auto before = source.find(dependency.before);
    const auto after = now.find(dependency.after);
    if (before == source.end() || after == now.end()) continue;
    rank.connect(dependency, before->second, after->second);
  }
}

}  // namespace moeline
