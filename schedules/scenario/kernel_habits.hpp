// Whose kernels a stack runs, as a table: a row for each habit, with where it is written. A scenario's keys overrule
// it.
#pragma once

#include <algorithm>
#include <vector>

#include "schedules/scenario/scenario.hpp"

namespace moeline::habits {

template <class Backend>
struct KernelHabit {
  Stack stack;
  const char* where;  ///< "FP8 in blocks on Hopper, experts whole"
  bool (*applies)(const Setup& setup);
  Backend backend;
  const char* source;
};

/// REQUIRES, for the rows' conditions: the setup has its parallelism and its comm.
[[nodiscard]] const std::vector<KernelHabit<MoeBackend>>& expert_kernels();
[[nodiscard]] const std::vector<KernelHabit<AttentionBackend>>& attention_kernels();

/// Of a stack, the first row that applies and whose kernels are among those that the machine's sets have; null where
/// none does: the stack runs those of its own tables.
template <class Backend>
[[nodiscard]] const KernelHabit<Backend>* habit_of(const Setup& setup, const std::vector<KernelHabit<Backend>>& rows,
                                                   const std::vector<Backend>& known) {
  for (const KernelHabit<Backend>& row : rows) {
    const bool counts = row.stack == setup.kernels().stack && row.applies(setup);
    if (counts && std::find(known.begin(), known.end(), row.backend) != known.end()) return &row;
  }
  return nullptr;
}

/// What experts in MXFP4 that are one fused layer multiply with, on tensor cores that have FP4.
[[nodiscard]] Precision mxfp4_rows(const Setup& setup);

}  // namespace moeline::habits
