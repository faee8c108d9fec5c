// The memory of a rank over a step: changes at instants, and the most that there is while each kind of pass runs.
#pragma once

#include <vector>

#include "base/time.hpp"
#include "experiments/memory/slot_memory.hpp"

namespace moeline {

/// What is in a GPU's memory from `at` on beside what stays, in bytes. While a slot runs, the most that it has.
struct MemoryChange {
  Time at{};
  double activations = 0, workspace = 0;
  double optimizer = 0;
  int passes = 0;  ///< micro-batches whose activations of a stage are kept, on the GPU or its host

  [[nodiscard]] double total() const { return activations + workspace + optimizer; }
};

/// The most that a GPU holds while such passes run.
struct MemoryPeak {
  MemoryPhase phase{};
  double bytes = 0;
};

/// A slot, and when what it holds is there.
struct SlotStay {
  Time start{}, end{};
  SlotKind kind{};
  SlotMemory memory;
};

/// In the order of time, from changes to what is there. What is freed at the instant at which something else begins
/// makes room for it.
void accumulate(std::vector<MemoryChange>& changes);
/// What is there, of slots and of other `changes`.
[[nodiscard]] std::vector<MemoryChange> changes_of(const std::vector<SlotStay>& stays,
                                                   std::vector<MemoryChange> changes);
/// The most while each kind of pass runs beside `rest`, what stays; the highest first. What the optimizer finds is what
/// is there behind the last slot. `stays`: in the order of time.
[[nodiscard]] std::vector<MemoryPeak> peaks_of(const std::vector<MemoryChange>& changes,
                                               const std::vector<SlotStay>& stays, double rest);

}  // namespace moeline
