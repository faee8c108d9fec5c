// What Megatron's lists of kernels are made of: linear layers in both directions, and what tensor parallel ranks
// exchange around them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "moe/kernels.hpp"
#include "moe/tensor_parallel.hpp"
#include "moe/training.hpp"

namespace moeline::megatron {

/// A linear layer from rows of k numbers to rows of n.
struct LinearShape {
  double rows = 0, n = 0, k = 0;
};

/// The kernels of a part of a layer, in launch order.
class Kernels : public kernels::KernelList {
 public:
  /// `stored`: the format of its linear layers.
  Kernels(const LayerWork& work, Precision stored) : work_(work), format_(work.tensor_format(stored)) {}

  void forward(const char* module, const std::string& name, const LinearShape& shape) {
    cast_both_ways(module, "cast input of " + name, shape.rows, shape.k);
    product(module, name + " fprop", shape.rows, shape.n, shape.k);
  }
  /// The gradient of the layer's input. That of its output is cast for the gradient of the weights, too.
  void input_gradient(const char* module, const std::string& name, const LinearShape& shape) {
    cast_both_ways(module, "cast gradient of " + name, shape.rows, shape.n);
    product(module, name + " dgrad", shape.rows, shape.k, shape.n);
  }
  void weight_gradient(const char* module, const std::string& name, const LinearShape& shape) {
    product(module, name + " wgrad", shape.n, shape.k, shape.rows);
    as_weight_gradient(ops().back());
  }

  /// The same three of experts, one product each. `shape.rows`: of all of them; padding counts for nothing.
  void experts_forward(const char* module, const std::string& name, const LinearShape& shape) {
    cast_both_ways(module, "cast input of " + name, shape.rows, shape.k);
    each_expert(module, name + " fprop", {shape.rows, shape.n, shape.k});
  }
  void experts_input_gradient(const char* module, const std::string& name, const LinearShape& shape) {
    cast_both_ways(module, "cast gradient of " + name, shape.rows, shape.n);
    each_expert(module, name + " dgrad", {shape.rows, shape.k, shape.n});
  }
  void experts_weight_gradient(const char* module, const std::string& name, const LinearShape& shape);

  void append(std::vector<Operator> more) {
    for (Operator& op : more) ops().push_back(std::move(op));
  }
  /// In launch order from there on: done again in the backward pass.
  void recompute(const std::vector<Operator>& ops) {
    for (const Operator& op : ops) this->ops().push_back(kernels::recomputed(op));
  }
  /// The same of the list's own, from one on.
  void recompute_from(std::size_t first) {
    for (std::size_t i = first; i < ops().size(); ++i) ops()[i] = kernels::recomputed(ops()[i]);
  }

  /// `columns` of the tokens of all tp ranks: from the ranks' parts to all of them, in the format of the linear layer
  /// that takes them, and BF16 sums back into parts.
  void gather(const char* module, double columns) {
    if (work_.tp > 1) add(module, all_gather(work_.tokens() * columns * number_bytes(format_), tensor_group()));
  }
  void scatter(const char* module, double columns) {
    if (work_.tp > 1) add(module, reduce_scatter(work_.tokens() * columns * kernels::kBf16, tensor_group()));
  }
  /// The input of a weight gradient once more, beside what comes next.
  void gather_beside(const char* module, double columns) {
    if (work_.tp == 1) return;
    gather(module, columns);
    ops().back().beside = true;
  }

 private:
  [[nodiscard]] bool casts() const { return format_ != Precision::bf16; }
  void cast_both_ways(const char* module, std::string name, double rows, double columns) {
    if (casts()) add(module, kernels::memory(Family::cast_transpose, std::move(name), rows * columns * kCastBytes));
  }
  void product(const char* module, std::string name, double m, double n, double k) {
    add(module, kernels::linear_gemm(format_, std::move(name), m, n, k));
  }
  void each_expert(const char* module, const std::string& name, const LinearShape& shape);
  static void as_weight_gradient(Operator& op) {
    op.parallel = true;
    op.bytes += op.m * op.n * (2 * kernels::kFp32 - kernels::kBf16);  // read, added to and written
  }
  [[nodiscard]] Operator of_expert(std::string name, double m, double n, double k) const;
  [[nodiscard]] Replicas tensor_group() const { return consecutive(work_.tp, work_.gpus_per_node); }

  static constexpr double kCastBytes = kernels::kBf16 + 2 * kernels::kFp8;

  const LayerWork& work_;
  Precision format_;
};

/// Attention with the heads that the rank has, and the columns of its tensors, all heads together.
struct AttentionTensors {
  explicit AttentionTensors(const LayerWork& w);
  [[nodiscard]] bool latent() const { return a.kind == AttentionKind::mla; }

  const LayerWork& work;
  LayerAttention a;
  double t, own, hidden;  ///< tokens of the ranks that share them, the rank's own, and their numbers
  double query, key, value, out;
};

/// The backward pass computes the module again.
[[nodiscard]] inline bool recomputes(const LayerWork& work, bool RecomputedModules::*module) {
  return work.choices.recompute == Recompute::selective && work.choices.modules.*module;
}

/// Attention proper and what it exchanges with the ranks that share its sequences, in both directions.
void attend(Kernels& list, const AttentionTensors& d);
void attend_backward(Kernels& list, const AttentionTensors& d);

/// Of a part of a layer on the rank's own tokens.
[[nodiscard]] Operator residual_add(const LayerWork& work);
[[nodiscard]] Operator layer_norm(const LayerWork& work);

/// Token-expert pairs of the rank's own tokens.
[[nodiscard]] double routed_pairs(const LayerWork& work);
/// The router's map says of each token and expert whether they meet.
inline constexpr double kMapByte = 1;

/// Router of a MoE layer, on the rank's own tokens.
void route_forward(Kernels& list, const LayerWork& work);
void route_backward(Kernels& list, const LayerWork& work);

/// Tokens to rows of experts and back. Before NCCL's all-to-all each token is copied for each of its experts; behind it
/// rows are sorted by expert. Where tokens come once, they are copied to their rows. Ranks that share experts gather
/// each other's rows first, and add up the results. `knows_map`: of rows, from the forward pass.
void permute_to_send(Kernels& list, const LayerWork& work);
[[nodiscard]] Operator permuted_tokens(const LayerWork& work);
void sort_received(Kernels& list, const LayerWork& work, bool knows_map);
void sort_to_return(Kernels& list, const LayerWork& work);
[[nodiscard]] std::vector<Operator> reduce_returned(const LayerWork& work);

/// What a layer ends with: the sum of its parts.
[[nodiscard]] std::vector<Operator> add_results(const LayerWork& work);

}  // namespace moeline::megatron
