// The tree of a model's modules, as a FLOPs profiler prints it, and what a step has beside them.
//
//     model       embedding; layers: norms, attention, dense FFN, router, dispatch, routed experts, combine, shared
//                 experts, each with its parts; LM head
//     MTP         the same of all MTP modules together: embedding, projection, the parts of a layer, LM head
//     pipeline    activations and gradients between stages
//     optimizer   what a step of training ends with
//     unknown     kernels of a measured trace of which nothing says what they are part of
#pragma once

#include <set>
#include <string>
#include <vector>

#include "architecture/architecture.hpp"

namespace moeline {

struct ModuleNode {
  std::string name;       ///< as module_names.hpp has it, or of a node above: "attention", "layers"
  std::string parent;     ///< "" of a root
  int depth = 0;          ///< of a root 0
  double parameters = 0;  ///< of the whole model, those of the nodes below it included
};

/// Every node after its parent, in the order of the forward pass. `in_use`: names of modules that have kernels. A
/// joined name in use stands in place of those that it joins; what has neither parameters nor kernels is left out, and
/// so are MTP modules without kernels. Norms hold biases of projections and attention sinks, too; parts of MTP modules
/// hold no embedding and LM head: they share the model's, as a tied LM head shares the embedding. Parameters agree with
/// architecture/parameters.hpp: of "model" with parameters(), of each module with its row of modules().
[[nodiscard]] std::vector<ModuleNode> module_tree(const Architecture& model, const std::set<std::string>& in_use);

/// Of a model that is not known: modules in use and those that they are part of, without parameters.
[[nodiscard]] std::vector<ModuleNode> module_tree(const std::set<std::string>& in_use);

/// "attention/q_b_proj" -> "attention", "attention" -> "layers", "model" -> "". Throws SpecError, with the nearest
/// name, for what is no module.
[[nodiscard]] std::string parent_of(const std::string& module);

/// Of an MTP module: "attention/core" -> "MTP/attention/core".
[[nodiscard]] std::string in_mtp(const std::string& module);

}  // namespace moeline
