#include "schedules/pipeline/connect_passes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace moeline {
namespace {

// Where each pass runs.
class PassTable {
 public:
  struct Entry {
    int rank = -1;
    PassEnds ends;
  };

  explicit PassTable(const std::vector<RankSlots>& ranks) {
    int micro_batches = 0;
    for (const RankSlots& slots : ranks) {
      for (const Slot& slot : slots) {
        stages_ = std::max({stages_, slot.forward.stage + 1, slot.backward.stage + 1});
        micro_batches = std::max({micro_batches, slot.forward.micro_batch + 1, slot.backward.micro_batch + 1});
      }
    }
    entries_.resize(static_cast<std::size_t>(stages_) * static_cast<std::size_t>(micro_batches));
  }

  void put(const Pass& pass, int rank, const PassEnds& ends) {
    Entry& entry = entries_[index(pass.micro_batch, pass.stage)];
    MOELINE_CHECK(entry.rank < 0, fmt::format("micro-batch {} passes stage {} twice", pass.micro_batch, pass.stage));
    entry = {rank, ends};
  }
  [[nodiscard]] const Entry& at(int micro_batch, int stage) const {
    const Entry& entry = entries_[index(micro_batch, stage)];
    MOELINE_CHECK(entry.rank >= 0, fmt::format("micro-batch {} never passes stage {}", micro_batch, stage));
    return entry;
  }
  [[nodiscard]] int stages() const { return stages_; }

 private:
  [[nodiscard]] std::size_t index(int micro_batch, int stage) const {
    return static_cast<std::size_t>(micro_batch) * static_cast<std::size_t>(stages_) + static_cast<std::size_t>(stage);
  }

  int stages_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace

void connect_passes(const std::vector<RankSlots>& ranks, const std::vector<std::vector<SlotEnds>>& ends,
                    TaskGraphDraft& graph, const std::function<void(const Delivery&)>& deliver) {
  PassTable forward(ranks);
  PassTable backward = forward;
  const auto each_slot = [&](const auto& visit) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
        visit(static_cast<int>(rank), i, ranks[rank][i], ends[rank][i]);
      }
    }
  };
  each_slot([&](int rank, std::size_t, const Slot& slot, const SlotEnds& own) {
    if (has_forward(slot.kind)) forward.put(slot.forward, rank, own.forward);
    if (has_backward(slot.kind)) backward.put(slot.backward, rank, own.backward);
  });
  each_slot([&](int rank, std::size_t index, const Slot& slot, const SlotEnds& own) {
    if (has_forward(slot.kind) && slot.forward.stage > 0) {
      (void)forward.at(slot.forward.micro_batch, slot.forward.stage - 1);  // somebody gives its input
    }
    if (has_forward(slot.kind) && slot.forward.stage + 1 < forward.stages()) {
      const auto& [to_rank, to] = forward.at(slot.forward.micro_batch, slot.forward.stage + 1);
      deliver({true, slot.forward.micro_batch, rank, to_rank, index, own.forward.out, to.in});
    }
    if (!has_backward(slot.kind)) return;
    graph.start_after_end(forward.at(slot.backward.micro_batch, slot.backward.stage).ends.out, own.backward.in);
    if (slot.backward.stage == 0) return;
    const auto& [to_rank, to] = backward.at(slot.backward.micro_batch, slot.backward.stage - 1);
    deliver({false, slot.backward.micro_batch, rank, to_rank, index, own.backward.out, to.in});
  });
}

}  // namespace moeline
