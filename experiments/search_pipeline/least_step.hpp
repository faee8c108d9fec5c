// What a step takes at least: the slots of the rank that has most to do, each kernel as fast as alone.
#pragma once

#include <array>
#include <vector>

#include "experiments/search_pipeline/search_pipeline.hpp"
#include "schedules/scenario/scenario.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {

class LeastStep {
 public:
  /// REQUIRES: a whole pipeline of operators.
  explicit LeastStep(const Setup& setup);

  [[nodiscard]] double ms(const Partition& partition) const;
  /// Of every partition: work is at best equal on all ranks, and layers are whole.
  [[nodiscard]] double ms() const { return floor_ms_; }

 private:
  enum Pass : std::size_t { forward, backward, weight, overlapped_forward, overlapped_backward };
  using Passes = std::array<double, 5>;

  void count_passes(const Setup& setup);
  void set_floor();
  [[nodiscard]] double rank_ms(const std::vector<Passes>& counts, const std::vector<Passes>& stage_ms) const;
  [[nodiscard]] static double product(const Passes& counts, const Passes& ms);

  std::vector<Block> blocks_;
  std::vector<Passes> block_ms_;             // of one micro-batch
  std::vector<std::vector<Passes>> counts_;  // by rank and stage: micro-batches
  bool weights_apart_ = false;               // slots W
  double floor_ms_ = 0;
};

}  // namespace moeline
