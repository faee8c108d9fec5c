#include "schedules/pipeline/messages.hpp"

#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "schedules/pipeline/replicas.hpp"

namespace moeline {
namespace {

Operator message(const Setup& setup) {
  const Scenario& s = setup.scenario;
  const TrainWorkload& w = as_train(s.workload);
  const double tokens = 1.0 * w.micro_batch_size * w.seq_len;
  return send(tokens * setup.model.hidden_size * kernels::kBf16, next_stage(setup));
}

bool is_outgoing(const Usage& usage) {
  const auto link = static_cast<RankResource>(usage.link);
  return link == RankResource::nvlink_out || link == RankResource::nic_out;
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

}  // namespace

Messages::Messages(ProgramDraft& program, std::vector<RankProgram>& ranks)
    : program_(program),
      ranks_(ranks),
      send_forward_(prepare("send(F)", module_names::kSendActivations, true)),
      send_backward_(prepare("send(B)", module_names::kSendGradients, true)),
      receive_forward_(prepare("receive(F)", module_names::kSendActivations, false)),
      receive_backward_(prepare("receive(B)", module_names::kSendGradients, false)) {}

PreparedPhase& Messages::prepare(const char* name, const char* module, bool sends) {
  PreparedPhase& phase = program_.prepare(name, {kernels::in(module, message(program_.setup()))}, {});
  PreparedKernel& kernel = phase.kernels.front();
  std::erase_if(kernel.usages, [&](const Usage& usage) {
    return static_cast<RankResource>(usage.link) != RankResource::hbm && is_outgoing(usage) != sends;
  });
  if (!sends) {  // one message, of which the sender's part counts and is launched
    phase.uses.clear();
    kernel.task.delay = Time::zero();
  }
  return phase;
}

void Messages::beside(SlotKind kind) {
  RankProgram& rank = ranks_.front();
  if (has_forward(kind)) {
    rank.append(send_forward_, {0, 0, StreamName::activations_to_next});
    rank.append(receive_forward_, {0, 0, StreamName::activations_from_previous});
  }
  if (has_backward(kind)) {
    rank.append(send_backward_, {0, 0, StreamName::gradients_to_previous});
    rank.append(receive_backward_, {0, 0, StreamName::gradients_from_next});
  }
}

TaskId Messages::deliver(const Delivery& d) {
  TaskGraphDraft& graph = program_.graph();
  if (d.from_rank == d.to_rank) {
    graph.start_after_end(d.out, d.in);
    return kNoTask;
  }
  const bool next = to_next(d, ranks_.size());
  const Place out{0, d.micro_batch, out_stream(d.is_forward, next)};
  const Place in{0, d.micro_batch, in_stream(d.is_forward, next)};
  const TaskId sent =
      ranks_[static_cast<std::size_t>(d.from_rank)].append(d.is_forward ? send_forward_ : send_backward_, out).last;
  const TaskId received =
      ranks_[static_cast<std::size_t>(d.to_rank)].append(d.is_forward ? receive_forward_ : receive_backward_, in).last;
  graph.start_after_end(d.out, sent);
  graph.start_after_start(sent, received);
  graph.end_after_end(sent, received);
  graph.start_after_end(received, d.in);
  return sent;
}

}  // namespace moeline
