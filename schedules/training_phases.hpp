// The prepared phases of a training chunk: one for each name and number of expert rows.
#pragma once

#include <map>
#include <string>

#include "schedules/lower.hpp"

namespace moeline {

using LayerPhases = std::map<std::string, PhaseTasks>;

class TrainingPhases {
 public:
  /// REQUIRES: both outlive it.
  TrainingPhases(const Setup& setup, RankProgram& rank) : setup_(setup), rank_(rank) {}

  [[nodiscard]] const PreparedPhase& at(const std::string& name, int layer);
  /// The model's own dependencies within a layer and from the layer before.
  void connect(const LayerPhases& previous, const LayerPhases& now);

 private:
  [[nodiscard]] double upstream_variance(const std::string& name, int layer);

  const Setup& setup_;
  RankProgram& rank_;
  std::map<std::pair<std::string, double>, PreparedPhase> prepared_;
};

}  // namespace moeline
