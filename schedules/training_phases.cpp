#include "schedules/training_phases.hpp"

#include <cmath>

#include "schedules/skew.hpp"

namespace moeline {

PreparedPhase& TrainingPhases::at(const std::string& name, int layer, int rank) {
  const Setup& setup = program_.setup();
  const LayerWork work = setup.layer_work(name.ends_with("(F)"), layer, rank);
  const bool own_traffic = is_transfer(name) && !setup.routed.empty();
  const bool waits = is_transfer(name) && !setup.every_rank;  // for a rank with other rows, as long as its work varies
  const double rows = name.starts_with("mlp") || waits ? work.load.rows : 0;
  const auto [found, is_new] = prepared_.try_emplace({name, rows, own_traffic ? layer : 0}, nullptr);
  if (!is_new) return *found->second;
  PreparedPhase*& prepared = found->second;
  prepared = &program_.prepare(name, training_phase(name, work));
  if (waits && !setup.free_communication) {
    prepared->wait_us =
        expected_maximum(setup.scenario.parallelism.ep) * std::sqrt(upstream_variance(name, layer, rank));
  }
  return *prepared;
}

// Of the work on the data's way since the barrier before.
double TrainingPhases::upstream_variance(const std::string& name, int layer, int rank) {
  double variance = 0;
  for (const PhaseDependency& dependency : training_dependencies()) {
    if (dependency.after != name || is_transfer(dependency.before)) continue;
    variance += at(dependency.before, layer, rank).variance_us2 + upstream_variance(dependency.before, layer, rank);
  }
  return variance;
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
