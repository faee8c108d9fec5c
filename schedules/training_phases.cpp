#include "schedules/training_phases.hpp"

#include <cmath>

#include "schedules/skew.hpp"

namespace moeline {

const PreparedPhase& TrainingPhases::at(const std::string& name, int layer) {
  const LayerWork work = setup_.layer_work(name.ends_with("(F)"), layer);
  const std::pair key{name, work.load.rows};
  const auto found = prepared_.find(key);
  if (found != prepared_.end()) return found->second;
  double wait_us = 0;
  if (is_transfer(name)) {
    wait_us = expected_maximum(setup_.scenario.parallelism.ep) * std::sqrt(upstream_variance(name, layer));
  }
  return prepared_.emplace(key, rank_.prepare(name, training_phase(name, work), wait_us)).first->second;
}

// Of the work on the data's way since the barrier before.
double TrainingPhases::upstream_variance(const std::string& name, int layer) {
  double variance = 0;
  for (const PhaseDependency& dependency : training_dependencies()) {
    if (dependency.after != name || is_transfer(dependency.before)) continue;
    variance += at(dependency.before, layer).variance_us2 + upstream_variance(dependency.before, layer);
  }
  return variance;
}

void TrainingPhases::connect(const LayerPhases& previous, const LayerPhases& now) {
  for (const PhaseDependency& dependency : training_dependencies()) {
    const LayerPhases& source = dependency.next_layer ? previous : now;
    const auto before = source.find(dependency.before);
    const auto after = now.find(dependency.after);
    if (before == source.end() || after == now.end()) continue;
    rank_.connect(dependency, before->second, after->second);
  }
}

}  // namespace moeline
