// Small kernels that stand between the products of a layer, by kind: what traces of serving stacks show one by one.
//
// With the few rows of a decode step such a kernel takes what starting and ending it costs, whatever its size. That
// differs by kind and by machine, so a kernel set may have a floor for each kind (curves/form.hpp, `launch_floor`);
// where it has none, the kernel goes by its family.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "moe/operator.hpp"

namespace moeline {

enum class SmallKernel {
  norm,            ///< RMSNorm of a hidden state, mostly with the residual add
  head_norm,       ///< RMSNorm of query and key heads
  head_copy,       ///< heads copied out of the product that made them
  rotary_store,    ///< rotary embedding, and new keys and values into the cache
  activation,      ///< SwiGLU or its like, of a feed-forward network that all tokens go through
  expert_choice,   ///< scores, top-k and the weights of the chosen
  embedding_rows,  ///< rows of the embedding, by token
  logits_cast,     ///< logits from BF16 to FP32
  token_choice,    ///< the next token by its logits
};

[[nodiscard]] const std::string& name_of(SmallKernel kind);
/// In the order of the enumeration.
[[nodiscard]] const std::vector<std::string>& small_kernel_names();
/// None where no kind has that name.
[[nodiscard]] std::optional<SmallKernel> small_kernel_named(const std::string& name);
/// What it goes by where no floor of its own was measured.
[[nodiscard]] Family family_of(SmallKernel kind);

/// The same kernel as one of that kind.
[[nodiscard]] Operator as_small(SmallKernel kind, Operator op);
/// Whether a kernel set may have a floor for it.
[[nodiscard]] bool is_small_kernel(const Operator& op);

}  // namespace moeline
