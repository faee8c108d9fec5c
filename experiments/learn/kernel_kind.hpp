// What a kernel does for a layer, in words that a trace's names and the model's operators share.
#pragma once

#include <cstdint>
#include <string_view>

#include "moe/operator.hpp"
#include "trace/kernel_class.hpp"

namespace moeline {

enum class KernelKind : std::uint8_t {
  product,       ///< of matrices
  experts,       ///< grouped or batched products of routed experts
  attention,     ///< its core, or what stands in its place
  norm,          ///< of hidden states, or of heads
  rotary,        ///< embedding of positions, and what writes the cache
  activation,    ///< SwiGLU and its like
  quantise,      ///< to a format of fewer bits
  routing,       ///< top-k, layouts, counts, rows to experts and back
  embedding,     ///< rows looked up
  token_choice,  ///< from logits to the next token
  state,         ///< convolutions and gates around linear attention
  collective,    ///< sums and gathers of ranks that share a layer
  dispatch,
  combine,
  barrier,
  rest,   ///< what finishes the kernel before it: sums of split products, or of parts of attention
  plain,  ///< copies and element-wise kernels whose names say no more: a part of anything that passes over memory
};

/// Several at a time: one kernel may do what the model has as two operators.
class KernelKinds {
 public:
  constexpr KernelKinds() = default;
  constexpr KernelKinds(KernelKind kind) : bits_(bit(kind)) {}  // NOLINT: a kind is a set of one
  [[nodiscard]] constexpr bool has(KernelKind kind) const { return (bits_ & bit(kind)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  constexpr KernelKinds& operator|=(KernelKinds other) {
    bits_ |= other.bits_;
    return *this;
  }

 private:
  static constexpr std::uint32_t bit(KernelKind kind) { return 1U << static_cast<unsigned>(kind); }
  std::uint32_t bits_ = 0;
};

/// By the words in its name, or where there are none by its class. An "add_rmsnorm_quant" norms and quantises.
[[nodiscard]] KernelKinds kinds_of_name(std::string_view name, KernelClass kernel_class);
[[nodiscard]] KernelKind kind_of(const Operator& op);

}  // namespace moeline
