#include "schedules/pipeline/messages.hpp"

#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "schedules/lowering/joint_message.hpp"
#include "schedules/pipeline/replicas.hpp"

namespace moeline {
namespace {

Operator message(const Setup& setup, int seq_len) {
  const Scenario& s = setup.scenario;
  const double tokens = 1.0 * as_train(s.workload).micro_batch_size * seq_len;
  return stage_send(setup, tokens / s.parallelism.attention_ranks() * setup.model.hidden_size * kernels::kBf16);
}

// After the last rank comes the first, which interleaved chunks use.
bool to_next(const Delivery& d, std::size_t ranks) {
  const int step = d.to_rank - d.from_rank;
  const bool wraps = ranks > 2 && static_cast<std::size_t>(step < 0 ? -step : step) + 1 == ranks;
  return wraps ? step < 0 : step > 0;
}

StreamName out_stream(bool forward, bool next) {
  if (forward) return next ? StreamName::activations_to_next : StreamName::activations_to_previous;
  return next ? StreamName::gradients_to_next : StreamName::gradients_to_previous;
}

// What goes to the next rank comes from the previous one.
StreamName in_stream(bool forward, bool next) {
  if (forward) return next ? StreamName::activations_from_previous : StreamName::activations_from_next;
  return next ? StreamName::gradients_from_previous : StreamName::gradients_from_next;
}

// Of either end the part that its own links have.
PreparedPhase& prepare_part(ProgramDraft& program, const std::string& name, const char* module, const Operator& op,
                            bool sends) {
  PreparedPhase& phase = program.prepare(name, {kernels::in(module, op)}, {});
  PreparedKernel& kernel = phase.kernels.front();
  keep_end(sends, kernel);
  if (!sends) {  // one message, of which the sender's part counts and is launched
    phase.uses.clear();
    kernel.task.delay = Time::zero();
  }
  return phase;
}

}  // namespace

Operator stage_send(const Setup& setup, double bytes) {
  const Operator message = send(bytes, next_stage(setup));
  return setup.scenario.comm.stage_sends == StageSends::rdma ? without_sms(message) : message;
}

Message prepare_message(ProgramDraft& program, const char* suffix, const char* module, const Operator& op) {
  return {prepare_part(program, std::string("send") + suffix, module, op, true),
          prepare_part(program, std::string("receive") + suffix, module, op, false)};
}

void connect(const Delivered& message, TaskId out, TaskId in, TaskGraphDraft& graph) {
  graph.start_after_end(out, message.sent);
  graph.start_after_start(message.sent, message.received);
  graph.end_after_end(message.sent, message.received);
  graph.start_after_end(message.received, in);
}

Messages::Messages(ProgramDraft& program, std::vector<RankProgram>& ranks) : program_(program), ranks_(ranks) {}

const Message& Messages::at(bool is_forward, int micro_batch) {
  const int seq_len = seq_len_of(as_train(program_.setup().scenario.workload), micro_batch);
  const auto found = messages_.find({is_forward, seq_len});
  if (found != messages_.end()) return found->second;
  const char* module = is_forward ? module_names::kSendActivations : module_names::kSendGradients;
  const Message made =
      prepare_message(program_, is_forward ? "(F)" : "(B)", module, message(program_.setup(), seq_len));
  // They are appended behind all slots, and launched between them.
  made.send.kernels.front().launched_before = made.receive.kernels.front().launched_before = true;
  return messages_.emplace(std::pair{is_forward, seq_len}, made).first->second;
}

void Messages::beside(const Slot& slot) {
  RankProgram& rank = ranks_.front();
  if (has_forward(slot.kind)) {
    const Message& activations = at(true, slot.forward.micro_batch);
    rank.append(activations.send, {0, 0, StreamName::activations_to_next});
    rank.append(activations.receive, {0, 0, StreamName::activations_from_previous});
  }
  if (has_backward(slot.kind)) {
    const Message& gradients = at(false, slot.backward.micro_batch);
    rank.append(gradients.send, {0, 0, StreamName::gradients_to_previous});
    rank.append(gradients.receive, {0, 0, StreamName::gradients_from_next});
  }
}

TaskId Messages::deliver(const Delivery& d) {
  if (d.from_rank == d.to_rank) {
    program_.graph().start_after_end(d.out, d.in);
    return kNoTask;
  }
  const bool next = to_next(d, ranks_.size());
  const Place out{0, d.micro_batch, out_stream(d.is_forward, next)};
  const Place in{0, d.micro_batch, in_stream(d.is_forward, next)};
  const Message& message = at(d.is_forward, d.micro_batch);
  const Delivered both{ranks_[static_cast<std::size_t>(d.from_rank)].append(message.send, out).last,
                       ranks_[static_cast<std::size_t>(d.to_rank)].append(message.receive, in).last};
  connect(both, d.out, d.in, program_.graph());
  return both.sent;
}

}  // namespace moeline
