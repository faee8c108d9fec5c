// A step of prefill or decode on one rank: the phases of every micro-batch and layer, and what they wait for.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "moe/inference.hpp"
#include "schedules/lower.hpp"

namespace moeline {

class InferenceProgram {
 public:
  /// REQUIRES: `setup` outlives it.
  InferenceProgram(const Setup& setup, int micro_batches, bool overlapped);
  InferenceProgram(const InferenceProgram&) = delete;  // it points into its own maps
  InferenceProgram& operator=(const InferenceProgram&) = delete;

  /// Appends a phase of the layer at this position in order of execution; a low-latency transfer as its two halves.
  void append(const std::string& phase, int micro_batch, int layer, StreamName stream);
  void append_issue(const std::string& phase, int micro_batch, int layer);
  void append_receive(const std::string& phase, int micro_batch, int layer);
  /// embedding, lm_head, mtp or draft_head, of all micro-batches together, once what was appended of this layer has
  /// ended.
  void append_whole(const std::string& phase, int layer);
  /// The last phase appended may start only when the one before it has ended, whatever their streams.
  void chain();

  /// Adds the model's data dependencies and hands the program over.
  [[nodiscard]] RankProgram finish() &&;

 private:
  using Key = std::tuple<int, int, std::string>;  // micro-batch, layer, phase
  [[nodiscard]] const PreparedPhase& prepared(const std::string& phase, int micro_batch, int layer);
  [[nodiscard]] double upstream_variance(const std::string& phase, int micro_batch, int layer);
  [[nodiscard]] int kind_of(int layer) const;
  void place(const std::string& phase, int micro_batch, int layer, const PhaseTasks& tasks);
  void connect();

  const Setup& setup_;
  std::vector<InferenceWork> work_;  // of each micro-batch
  InferenceWork whole_;
  double slowest_;  // of all ranks, in standard deviations
  RankProgram rank_;
  std::map<Key, PreparedPhase> prepared_;  // by kind of layer
  std::map<Key, PhaseTasks> placed_;
  const PhaseTasks* last_ = nullptr;
  const PhaseTasks* before_last_ = nullptr;
};

}  // namespace moeline
