// What a kernel or a few do, as a person writes it: "gemm:dtype=fp8,m=4096,n=7168,k=2048".
#pragma once

#include <string>
#include <vector>

#include "hardware/price.hpp"
#include "moe/operator.hpp"

namespace moeline {

struct RequestedOp {
  std::string text;
  std::vector<Operator> kernels;  ///< in launch order; most OPs have one
  PriceConditions conditions;
};

/// Kinds and their keys are listed by op_help(); what is left out is DeepSeek-V3's. Throws SpecError with the nearest
/// name.
[[nodiscard]] RequestedOp parse_op(const std::string& text, const MachineFacts& machine);

[[nodiscard]] std::string op_help();

}  // namespace moeline
