// Whose kernels a stack runs, as a table: a row for each habit, with where it is written. A scenario's keys overrule
// it.
#pragma once

#include <string>
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

/// Of a stack, the first row that applies and whose kernels the machine's sets have counts; without one, those of its
/// own tables. REQUIRES, for the rows' conditions: the setup has its parallelism and its comm.
[[nodiscard]] const std::vector<KernelHabit<MoeBackend>>& expert_kernels();
[[nodiscard]] const std::vector<KernelHabit<AttentionBackend>>& attention_kernels();

/// What experts in MXFP4 that are one fused layer multiply with, on tensor cores that have FP4.
[[nodiscard]] Precision mxfp4_rows(const Setup& setup);

}  // namespace moeline::habits
