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

  /// Counts the slot. On one rank, slots of one kind whose stages hold equal blocks run alike.
  [[nodiscard]] SlotTiming timing_of(const Slot& slot, int rank);

  /// What the operators of all counted slots come to, on average over the ranks.
  void add_operators(Program& program) const;
  /// The same of busy times; what comes after the last slot left out.
  [[nodiscard]] Metrics metrics(Time step) const;
  /// The same of modules; messages between stages are left out: the step has them.
  [[nodiscard]] ModuleUses modules() const;

 private:
  struct Kind {
    Program program;
    SlotTiming timing;
    Metrics metrics;
    ModuleUses modules;
    double slots = 0;
  };
  [[nodiscard]] std::string key_of(const Slot& slot, int rank) const;
  [[nodiscard]] Setup setup_of(int rank) const;

  const Setup& setup_;
  std::vector<StageBlocks> stages_;
  std::vector<std::string> described_;  // of each stage, what its slots depend on
  std::map<std::string, Kind> kinds_;
};

}  // namespace moeline
