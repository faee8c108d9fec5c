// The keys of an OP, "gemm:dtype=fp8,m=4096": read strictly, each with a default.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/spec.hpp"
#include "curves/machine_facts.hpp"
#include "hardware/parse_op.hpp"

namespace moeline {

inline constexpr int kMostOfOp = 1 << 24;  ///< of any size

/// Every OP has the keys sms and clock besides its own.
class OpKeys {
 public:
  /// Throws SpecError, with the OP as its place, for what is not key=value, unknown or repeated.
  OpKeys(const std::string& text, std::vector<std::string> known);

  [[nodiscard]] double size(const char* key, int fallback) const {
    return spec_.integer_or(key, 1, kMostOfOp, fallback);
  }
  [[nodiscard]] double size_or_none(const char* key) const { return spec_.integer_or(key, 0, kMostOfOp, 0); }
  /// Of what is a mean, as rows that chance deals out.
  [[nodiscard]] double amount(const char* key, double fallback) const { return number_or(key, 0, kMostOfOp, fallback); }
  [[nodiscard]] std::optional<double> amount_if_given(const char* key) const {
    return spec_.has(key) ? std::optional(amount(key, 0)) : std::nullopt;
  }
  [[nodiscard]] double number_or(const char* key, double low, double high, double fallback) const {
    return spec_.has(key) ? spec_.number(key, low, high) : fallback;
  }
  /// The first one where the key is absent.
  [[nodiscard]] std::string choice(const char* key, const std::vector<std::string>& choices) const {
    return spec_.has(key) ? spec_.choice(key, choices) : choices.front();
  }
  /// It is launched on so many SMs, at most all, where the keys do not say otherwise.
  [[nodiscard]] PriceConditions conditions(const MachineFacts& machine, int sms) const;
  [[nodiscard]] PriceConditions conditions(const MachineFacts& machine) const {
    return conditions(machine, static_cast<int>(machine.sms));
  }
  [[nodiscard]] const Spec& spec() const { return spec_; }
  /// The OP's kernels on all SMs or so many; with l2=hot, where the OP has the key, on operands that L2 holds.
  [[nodiscard]] RequestedOp requested(const std::string& text, std::vector<Operator> kernels,
                                      const MachineFacts& machine) const;

 private:
  Spec spec_;
};

// The kinds of OP: what `moeline price` asks for and what a measured table's rows are read as.

// Each takes "KIND:key=value,..." (op_help() lists the keys) and throws SpecError with the OP as its place.

// compute_ops.cpp
[[nodiscard]] RequestedOp gemm_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp linear_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp batched_gemm_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp grouped_gemm_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp moe_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp memory_op(const std::string& text, const MachineFacts& machine);

// attention_ops.cpp
[[nodiscard]] RequestedOp mla_decode_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp gqa_decode_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp attention_forward_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp attention_backward_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp state_scan_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp state_update_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp state_convolution_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp index_scores_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp index_choice_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp sparse_attention_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp hyper_connection_op(const std::string& text, const MachineFacts& machine);

// transfer_ops.cpp
[[nodiscard]] RequestedOp all_reduce_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp all_gather_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp reduce_scatter_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp all_to_all_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp send_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp dispatch_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp combine_op(const std::string& text, const MachineFacts& machine);

}  // namespace moeline
