// The kinds of OP: what `moeline price` asks for and what a measured table's rows are read as.
#pragma once

#include <string>

#include "curves/machine_facts.hpp"
#include "hardware/parse_op.hpp"

namespace moeline {

// Each takes "KIND:key=value,..." (op_help() lists the keys) and throws SpecError with the OP as its place.

// compute_ops.cpp
[[nodiscard]] RequestedOp gemm_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp linear_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp batched_gemm_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp grouped_gemm_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp memory_op(const std::string& text, const MachineFacts& machine);

// attention_ops.cpp
[[nodiscard]] RequestedOp mla_decode_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp gqa_decode_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp attention_forward_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp attention_backward_op(const std::string& text, const MachineFacts& machine);

// state_ops.cpp
[[nodiscard]] RequestedOp state_scan_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp state_update_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp state_convolution_op(const std::string& text, const MachineFacts& machine);

// sparse_ops.cpp
[[nodiscard]] RequestedOp index_scores_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp index_choice_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp sparse_attention_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp hyper_connection_op(const std::string& text, const MachineFacts& machine);

// expert_ops.cpp
[[nodiscard]] RequestedOp moe_op(const std::string& text, const MachineFacts& machine);

// collective_ops.cpp
[[nodiscard]] RequestedOp all_reduce_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp all_gather_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp reduce_scatter_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp all_to_all_op(const std::string& text, const MachineFacts& machine);

// transfer_ops.cpp
[[nodiscard]] RequestedOp dispatch_op(const std::string& text, const MachineFacts& machine);
[[nodiscard]] RequestedOp combine_op(const std::string& text, const MachineFacts& machine);

}  // namespace moeline
