// One rank's routed experts as serving stacks run them: one body of kernels from the router's choices to summed tokens,
// communication apart. Every local expert that gets rows gets equally many, and loads are balanced where the shape does
// not say how many rows and experts those are.
#pragma once

#include <string>
#include <vector>

#include "moe/operator.hpp"

namespace moeline {

/// "fused", "masked", as OPs and the families of tables have them.
[[nodiscard]] const std::string& name_of(ExpertLayout layout);
/// "gate_up", "down"; of `layer`, which is one kernel or all of them, "layer".
[[nodiscard]] const std::string& name_of(ExpertRole role);
/// In the order of the enumerations, and of roles from `routing` on.
[[nodiscard]] const std::vector<std::string>& expert_layouts();
[[nodiscard]] const std::vector<std::string>& expert_roles();

/// The rows that a rank's experts get.
struct ExpertRows {
  double local = 1;  ///< experts on the rank
  double rows = 1;   ///< of all of them; of balanced loads tokens x top_k / ep, one at least
  double hit = 1;    ///< experts that get any
  double each = 1;   ///< rows of such an expert; 0 where none gets any
};
[[nodiscard]] ExpertRows expert_rows(const ExpertShape& shape);

/// Tokens that kernels read and write one by one: those that are there. What is left of the buffer they skip, but for
/// the sort, which goes through the choices of every slot, and TensorRT-LLM's generated kernels, whose last one writes
/// zeroes.
[[nodiscard]] double tokens_there(const ExpertShape& shape);

/// What one of the two grouped GEMMs multiplies the rows of an expert by: n x k numbers.
struct ExpertMatrix {
  double n = 0, k = 0;
};
/// REQUIRES: the role gate_up or down.
[[nodiscard]] ExpertMatrix expert_matrix(const ExpertShape& shape, ExpertRole role);

/// Bytes of a weight, and of a number in a GEMM's input. With scales where weights have four bits, as elsewhere scales
/// are less than a part in thirty of the numbers that they scale.
[[nodiscard]] double expert_weight_bytes(const ExpertShape& shape);
[[nodiscard]] double expert_input_bytes(const ExpertShape& shape);

/// Whether a layer of this layout has such a kernel. Rows of a masked layout arrive permuted and leave unweighed;
/// whoever dispatched them chose the experts.
[[nodiscard]] bool has_role(ExpertLayout layout, ExpertRole role);

/// The family of measured layers that a layer belongs to: "moe_fp8", "moe_masked_fp8",
/// "moe_nvfp4_nongated".
[[nodiscard]] std::string measured_expert_layer(const ExpertShape& shape);

/// The kernels of a layer in launch order; the role of `shape` is not read.
///   FLOPs  2 x rows x (gate + 1) x hidden x width, of a contiguous layout with the rows that pad
///   bytes  the weights of experts that get rows, packed as they are stored, and every tensor of rows and tokens once
[[nodiscard]] std::vector<Operator> fused_experts(const ExpertShape& shape);

}  // namespace moeline
