// What each module of the model did in a step, as a FLOPs profiler says it: predicted, or measured in a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"
#include "measured/release.hpp"
#include "moe/module_tree.hpp"
#include "trace/kernel_class.hpp"

namespace moeline {

struct ModuleRow {
  std::string module, parent;
  int depth = 0;                       ///< of a root 0
  std::optional<double> parameters{};  ///< of the whole model
  bool knows_flops = true;             ///< of all its kernels
  ModuleUse use{};                     ///< the modules below it included

  /// FLOPs of the model over the time that its kernels took; none where either is unknown or nothing ran.
  [[nodiscard]] std::optional<double> tflops() const;
  /// What most of its time goes by, launch gaps included; none where that is not known, or nothing ran.
  [[nodiscard]] std::optional<BoundBy> bound_by() const;
};

/// Rows of one GPU, on average over those that are simulated or traced: every module after the one that it is part of.
struct ModuleTable {
  std::vector<ModuleRow> rows;
  double span_us = 0;
  std::optional<double> tokens{};  ///< of the step, for each GPU
  bool is_measured = false;        ///< what a kernel would have taken alone, and launch gaps, are not known
};

/// None of a pipeline of given slots: of its kernels nothing is known.
[[nodiscard]] std::optional<ModuleTable> module_table(const Run& run);

/// Of a trace a kernel is part of the module that the map names; else, where `scenario` is what ran in the trace and a
/// phase of it has as many kernels, that of the scenario's kernel at its place, with its FLOPs; else what its phase and
/// its class say, which is seldom a single matrix. Without a scenario there are no parameters. Throws SpecError where
/// trace and scenario have no phase in common.
[[nodiscard]] ModuleTable module_table(const Measured& measured, const KernelMap& map, const Setup* scenario);

/// Without the rows that are deeper.
[[nodiscard]] ModuleTable cut(ModuleTable table, int depth);

}  // namespace moeline
