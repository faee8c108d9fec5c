// In which number formats a scenario runs its model.
#pragma once

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Reads `precision`: of linear layers (attention, dense and shared FFNs), of routed experts and of the KV cache; the
/// checkpoint's own where a key is absent or says so. What is chosen replaces the checkpoint's formats, module by
/// module, in memory and in prices. Throws SpecError for a format that the module cannot have or the machine cannot
/// multiply.
void read_precision(const Spec& spec, Setup& setup);

}  // namespace moeline
