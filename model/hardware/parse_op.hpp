// What a kernel or a few do, as a person writes it: "gemm:dtype=fp8,m=4096,n=7168,k=2048".
#pragma once

#include <optional>
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

// The way back from a kernel of a step to an OP, so that whoever sees its price can ask for another size or machine.

/// An OP that has `price`, the operator's under these conditions, to the last digit, as parse_op() reads it:
/// "gemm:dtype=fp8,m=128,n=7168,k=2048". None where no OP says all that the price goes by: transfers of DeepEP's, whose
/// routing is the model's, and experts whose rows were drawn one by one.
[[nodiscard]] std::optional<std::string> op_text(const Operator& op, const PriceConditions& conditions,
                                                 const Price& price, const MachineFacts& machine,
                                                 const KernelSet& kernels);

}  // namespace moeline
