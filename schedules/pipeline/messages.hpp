// Activations and their gradients on the way from stage to stage, in training, prefill and decode.
#pragma once

#include <vector>

#include "schedules/lowering/rank_program.hpp"
#include "schedules/pipeline/lower_slots.hpp"

namespace moeline {

/// From a GPU to the one of its index in another stage. It is there when it has been sent and received, each at the
/// speed that the links of its rank leave it.
struct Message {
  PreparedPhase& send;
  PreparedPhase& receive;
};

/// Of a rank's part in what its stage hands to another, by what `comm.stage_sends` says.
[[nodiscard]] Operator stage_send(const Setup& setup, double bytes);

/// Phases "send" and "receive" with this suffix. `op`: as stage_send gives it.
[[nodiscard]] Message prepare_message(ProgramDraft& program, const char* suffix, const char* module,
                                      const Operator& op);

/// One that is sent and received on the streams of two ranks.
struct Delivered {
  TaskId sent = kNoTask, received = kNoTask;
};
/// It is ready at the end of `out`, and `in` needs it.
void connect(const Delivered& message, TaskId out, TaskId in, TaskGraphDraft& graph);

/// Those of a step of training: a message is the hidden state of one micro-batch in BF16, of tensor parallel ranks each
/// one's part. Messages of one kind and way follow each other.
class Messages {
 public:
  /// REQUIRES: both outlive it.
  Messages(ProgramDraft& program, std::vector<RankProgram>& ranks);

  /// From the end of `out` to the start of `in`. Gives the task that ends with the sender's part; kNoTask on one rank.
  TaskId deliver(const Delivery& delivery);
  /// On the first rank alone, from the start on: what such a slot sends and receives.
  void beside(const Slot& slot);

 private:
  const Message& at(bool is_forward, int micro_batch);

  ProgramDraft& program_;
  std::vector<RankProgram>& ranks_;
  std::map<std::pair<bool, int>, Message> messages_;  // by direction and length of a sequence
};

}  // namespace moeline
