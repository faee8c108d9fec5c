// The way back from a kernel of a step to an OP, so that whoever sees its price can ask for another size or machine.
#pragma once

#include <optional>
#include <string>

#include "hardware/price.hpp"

namespace moeline {

/// An OP that has `price`, the operator's under these conditions, to the last digit, as parse_op() reads it:
/// "gemm:dtype=fp8,m=128,n=7168,k=2048". None where no OP says all that the price goes by: transfers of DeepEP's, whose
/// routing is the model's, and experts whose rows were drawn one by one.
[[nodiscard]] std::optional<std::string> op_text(const Operator& op, const PriceConditions& conditions,
                                                 const Price& price, const MachineFacts& machine,
                                                 const KernelSet& kernels);

}  // namespace moeline
