// Which module of the model each kernel of a measured trace is part of.
#pragma once

#include <set>

#include "experiments/run/module_use.hpp"
#include "measured/release.hpp"
#include "trace/kernel_map.hpp"

namespace moeline {

struct MeasuredModules {
  ModuleUses uses;                      ///< of one GPU, on average over those of the trace
  std::set<std::string> without_flops;  ///< modules with kernels whose shapes are not known
};

/// As module_table() says. `scenario` null: none.
[[nodiscard]] MeasuredModules measured_modules(const Measured& measured, const KernelMap& map, const Setup* scenario);

}  // namespace moeline
