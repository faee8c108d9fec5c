// What a step runs where its scenario leaves a choice, and by whose habit: one line for each, with the key that
// overrules it.
#pragma once

#include <string>
#include <vector>

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Another library's kernels in the same place.
struct OtherKernels {
  std::string name;     ///< the key's word
  double layer_us = 0;  ///< alone
};

struct StackChoice {
  std::string what;      ///< "experts"
  std::string taken;     ///< "CUTLASS"
  std::string why;       ///< "as vLLM runs FP8 in blocks on Hopper with expert parallelism"
  std::string key;       ///< that overrules it, "moe_backend"
  std::string source{};  ///< of the habit, where it is a row of a table
  double layer_us = 0;   ///< of a layer's kernels that it is about, alone; 0: not said
  std::vector<OtherKernels> others{};
};

/// Of a step or chunk by a stack's kernels; empty where the kernel set is no stack's. REQUIRES: no slots of given
/// length.
[[nodiscard]] std::vector<StackChoice> stack_choices(const Setup& setup);

/// "experts: CUTLASS, as vLLM runs FP8 in blocks on Hopper with expert parallelism (moe_backend; 61.2 us a layer,
/// triton 48.3)".
[[nodiscard]] std::string line_of(const StackChoice& choice);

}  // namespace moeline
