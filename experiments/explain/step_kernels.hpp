// The kernels of a step, each with what it was charged and the OP by which `moeline price` charges the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"
#include "hardware/price.hpp"

namespace moeline {

struct StepKernel {
  std::string name;                 ///< as in the trace
  std::string module;               ///< moe/module_names.hpp
  double times = 0;                 ///< in a step
  double us = 0;                    ///< that all of them are charged, alone on the mean GPU
  double flops = 0;                 ///< of one
  Price price;                      ///< of one; where experts' rows are drawn by chance, at their mean
  std::optional<std::string> op{};  ///< that has this price

  [[nodiscard]] double each_us() const { return us / times; }
  /// What the mean over draws takes longer than the mean load, over that.
  [[nodiscard]] double by_chance() const { return price.solo_us > 0 ? each_us() / price.solo_us - 1 : 0; }
};

/// The bill of a step.
struct StepKernels {
  std::vector<StepKernel> kernels;  ///< of one GPU, on average over those that are simulated, the longest first
  double on_this_us = 0;            ///< all of them alone on the GPU that is simulated, which may be a slow one

  [[nodiscard]] double all_us() const;      ///< on the mean GPU
  [[nodiscard]] double with_op_us() const;  ///< of these, of kernels that an OP says
};

/// Equal kernels are one row, and a message between stages is a kernel at both of its ends. Layers that stand for
/// folded ones count as often. None where slots of a pipeline are one task each, or given.
[[nodiscard]] std::optional<StepKernels> step_kernels(const Run& run);

}  // namespace moeline
