// What a transfer costs: DeepEP's, TensorRT-LLM's, and collectives.
#pragma once

#include <string>
#include <vector>

#include "hardware/price.hpp"

namespace moeline::price_parts {

/// Of the curve of transfers without a form.
[[nodiscard]] std::vector<std::string> transfer_families(const Operator& op);

/// REQUIRES: is_all_to_all.
void price_transfer(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                    const KernelSet& kernels, Price& price);

/// What no table has goes at the links' peaks, behind a message's latency. How many SMs a collective holds is not
/// known, so none. REQUIRES: is_collective.
void price_collective(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                      const KernelSet& kernels, Price& price);

}  // namespace moeline::price_parts
