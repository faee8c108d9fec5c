// The prepared phases of a training chunk: one for each name and what the ranks' experts get in a layer.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "schedules/lower.hpp"

namespace moeline {

using LayerPhases = std::map<std::string, PhaseTasks>;

class TrainingPhases {
 public:
  /// REQUIRES: it outlives this.
  explicit TrainingPhases(ProgramDraft& program) : program_(program) {}

  [[nodiscard]] PreparedPhase& at(const std::string& name, int layer, int rank);

 private:
  ProgramDraft& program_;
  std::map<std::tuple<std::string, double, int>, PreparedPhase*> prepared_;  // name, rows, layer of unequal traffic
};

/// The model's own dependencies within a layer and from the layer before.
void connect(RankProgram& rank, const LayerPhases& previous, const LayerPhases& now);

}  // namespace moeline
