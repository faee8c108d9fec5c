// The prepared phases of training: one for each name, kind of block, and what the ranks' experts get in a layer.
#pragma once

#include <string>
#include <vector>

#include "schedules/lowering/prepared_phases.hpp"
#include "schedules/lowering/rank_program.hpp"
#include "schedules/scenario/overlap_plan.hpp"

namespace moeline {

class TrainingPhases {
 public:
  /// Of passes that run alone. REQUIRES: `program` outlives it.
  explicit TrainingPhases(ProgramDraft& program) : program_(program) {}
  /// Of two passes that overlap.
  TrainingPhases(ProgramDraft& program, OverlapPlan plan)
      : program_(program), overlapped_(true), plan_(std::move(plan)) {}

  [[nodiscard]] PreparedPhase& at(const std::string& name, const Block& block, int rank, int micro_batch = 0,
                                  const Piece& piece = {});
  /// Of a block, without dispatch and combine where tokens stay on their rank.
  [[nodiscard]] const std::vector<std::string>& forward(BlockKind kind) const;
  [[nodiscard]] const std::vector<std::string>& backward(BlockKind kind) const;
  /// Of a transfer after computation: for ranks that are not simulated.
  [[nodiscard]] double wait_us(const std::string& name, int micro_batch) const;
  [[nodiscard]] const Setup& setup() const { return program_.setup(); }
  [[nodiscard]] TaskGraphDraft& graph() { return program_.graph(); }

 private:
  PreparedPhase& prepared(const PhaseIdentity& identity, const LayerWork& work);
  [[nodiscard]] int number_of(const Layer& content);

  ProgramDraft& program_;
  bool overlapped_ = false;
  OverlapPlan plan_;
  std::vector<Layer> contents_;  // that layers were found to have: they differ by their attention
  PreparedPhases by_place_, by_rows_;
};

}  // namespace moeline
