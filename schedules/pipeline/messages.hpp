// Activations and their gradients on the way from stage to stage.
#pragma once

#include <vector>

#include "schedules/lowering/rank_program.hpp"
#include "schedules/pipeline/connect_passes.hpp"

namespace moeline {

/// A message is the hidden state of one micro-batch in BF16, from a GPU to the one of its index in the other stage. It
/// is there when it has been sent and received, each at the speed that the links of its rank leave it. Messages of one
/// kind and way follow each other.
class Messages {
 public:
  /// REQUIRES: both outlive it.
  Messages(ProgramDraft& program, std::vector<RankProgram>& ranks);

  /// From the end of `out` to the start of `in`. Gives the task that ends with the sender's part; kNoTask on one rank.
  TaskId deliver(const Delivery& delivery);
  /// On the first rank alone, from the start on: what a slot of this kind sends and receives.
  void beside(SlotKind kind);

 private:
  PreparedPhase& prepare(const char* name, const char* module, bool sends);

  ProgramDraft& program_;
  std::vector<RankProgram>& ranks_;
  PreparedPhase& send_forward_;
  PreparedPhase& send_backward_;
  PreparedPhase& receive_forward_;
  PreparedPhase& receive_backward_;
};

}  // namespace moeline
