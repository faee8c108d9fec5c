// The user's own words for kernels: a mapping file, and what counts as communication.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trace/kernel_class.hpp"

namespace moeline {

/// How to read a trace whose kernels or phases moeline does not know.
struct KernelMap {
  std::vector<NamePattern> classes;    ///< pattern -> class, before the built-in ones
  std::vector<NamePattern> phases;     ///< pattern -> phase; where there are any, annotations do not count
  std::string communication;           ///< pattern that alone decides what communicates; empty: the built-in ones
  std::vector<NamePattern> modules{};  ///< pattern -> module of the model
};

/// A YAML file:
///     schema: 1
///     communication: "my_a2a|nccl"                             # optional
///     classes: {dispatch: my_a2a_send, attention: "mha|gqa"}   # optional; first match wins
///     phases: {attn: "mha|gqa", dispatch: my_a2a_send}         # optional; first match wins
///     modules: {router/gate: "gate_gemm"}                      # optional; first match wins
/// Names of modules are not checked here (moe/module_names.hpp has them). Patterns are regular expressions, found
/// anywhere in a kernel's name, case ignored. Throws SpecError.
[[nodiscard]] KernelMap load_kernel_map(const std::filesystem::path& path);

}  // namespace moeline
