// What a transfer costs: DeepEP's, TensorRT-LLM's, collectives, and copies to the host.
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

/// Of DeepEP's second version, what follows a transfer. REQUIRES: is_deep_ep_v2_epilogue.
void price_epilogue(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine, Price& price);

/// By the link's nominal rate; copy engines hold no SM. REQUIRES: is_host_copy, and the machine says host_GBps.
void price_host_copy(const Operator& op, const MachineFacts& machine, Price& price);

}  // namespace moeline::price_parts
