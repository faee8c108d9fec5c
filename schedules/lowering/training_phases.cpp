#include "schedules/lowering/training_phases.hpp"

#include <algorithm>

#include "schedules/lowering/prepared_phases.hpp"

namespace moeline {

const std::vector<std::string>& TrainingPhases::forward(BlockKind kind) const {
  return forward_phases(kind, sends_tokens(setup().scenario.comm.mode));
}

const std::vector<std::string>& TrainingPhases::backward(BlockKind kind) const {
  return backward_phases(kind, sends_tokens(setup().scenario.comm.mode));
}

int TrainingPhases::number_of(const Layer& content) {
  const auto found = std::find(contents_.begin(), contents_.end(), content);
  const auto number = static_cast<int>(found - contents_.begin());
  if (found == contents_.end()) contents_.push_back(content);
  return number;
}

PreparedPhase& TrainingPhases::at(const std::string& name, const Block& block, int rank, int micro_batch,
                                  const Piece& piece) {
  const bool alike = !setup().experts_differ() && setup().scenario.routing.forward_rows.empty();
  PhaseIdentity place{.kind = block.kind, .alike = number_of(block.content), .piece = piece.index, .phase = name};
  place.seq_len = piece.size_of(seq_len_of(as_train(setup().scenario.workload), micro_batch));
  if (!alike) {
    place.layer = block.layer;
    place.rank = rank;
  }
  return by_place_.get(place, [&]() -> PreparedPhase& {
    const LayerWork work = setup().block_work(name.ends_with("(F)"), block, rank, micro_batch, piece);
    const bool own_traffic = is_transfer(name) && !setup().routed.empty();
    PhaseIdentity identity = place;
    identity.layer = own_traffic ? block.layer : 0;
    identity.rank = 0;
    // Ranks whose rows fill as many tiles share kernels: the tokens behind the rows differ by less than a tile's.
    identity.rows = name.starts_with("mlp") ? work.load.rows : 0;
    return prepared(identity, work);
  });
}

PreparedPhase& TrainingPhases::prepared(const PhaseIdentity& identity, const LayerWork& work) {
  return by_rows_.get(identity, [&]() -> PreparedPhase& {
    const std::string& name = identity.phase;
    const bool side = std::find(plan_.side.begin(), plan_.side.end(), name) != plan_.side.end();
    std::vector<Operator> ops = training_phase(name, work);
    if (identity.piece > 0) std::erase_if(ops, [](const Operator& op) { return op.of_weights; });
    const int sms = overlapped_ ? phase_sms(plan_, name, setup()) : 0;
    return program_.prepare(name, std::move(ops),
                            {.overlapped = overlapped_, .side_stream = side, .meetings = true, .sms = sms});
  });
}

// They were found for the first micro-batch.
double TrainingPhases::wait_us(const std::string& name, int micro_batch) const {
  const ExpectedWaits& waits = setup().waits;
  const auto& by_phase = overlapped_ ? waits.overlapped_us : waits.alone_us;
  const auto found = by_phase.find(name);
  if (found == by_phase.end()) return 0;
  const TrainWorkload& w = as_train(setup().scenario.workload);
  return w.seq_lens.empty() ? found->second : found->second * seq_len_of(w, micro_batch) / seq_len_of(w, 0);
}

}  // namespace moeline
