// A whole step of training with one task for each slot: what a slot takes is simulated once for each kind, alone.
#pragma once

#include <map>
#include <string>

#include "experiments/run/module_use.hpp"
#include "schedules/pipeline/training_step.hpp"
#include "timeline/metrics.hpp"

namespace moeline {

class SlotKinds {
 public:
  /// REQUIRES: `setup` outlives it.
  explicit SlotKinds(const Setup& setup);

  [[nodiscard]] const std::vector<StageBlocks>& stages() const { return stages_; }

  /// Counts the slot. On one rank, slots of one kind whose stages hold equal blocks run alike.
  [[nodiscard]] SlotTiming timing_of(const Slot& slot, int rank);

  /// What the operators of all counted slots come to, on average over the ranks.
  void add_operators(Program& program) const;
  /// The same of busy times; what comes after the last slot left out.
  [[nodiscard]] Metrics metrics(Time step) const;
  /// The same of modules; messages between stages are left out: the step has them.
  [[nodiscard]] ModuleUses modules() const;

 private:
  /// Slots of equal blocks: their operators, as fast as the rank that ran them last, and by task as the mean GPU is.
  struct Slots {
    Program program;
    ProgramSlot slot;
    std::vector<Time> mean_solo;
  };
  /// Those that one rank runs, as fast as its GPU is.
  struct RankSlots {
    const Program* program = nullptr;
    SlotTiming timing;
    Metrics metrics;
    ModuleUses modules;
    double count = 0;
  };
  [[nodiscard]] std::string key_of(const Slot& slot) const;
  [[nodiscard]] Slots& slots_like(const Slot& slot, const std::string& key);
  [[nodiscard]] RankSlots run(Slots& slots, int rank) const;

  const Setup& setup_;
  Setup mean_;  // with GPUs alike
  std::vector<StageBlocks> stages_;
  std::vector<std::string> described_;  // of each stage, what its slots depend on
  std::map<std::string, Slots> slots_;
  std::map<std::pair<std::string, int>, RankSlots> kinds_;  // by rank, where GPUs differ
};

}  // namespace moeline
