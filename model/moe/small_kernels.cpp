#include "moe/small_kernels.hpp"

#include <algorithm>
#include <array>

namespace moeline {
namespace {

struct SmallKernelRow {
  SmallKernel kind;
  std::string name;
  Family family;
};

// In the order of the enumeration.
const std::array<SmallKernelRow, 9>& small_kernels() {
  static const std::array<SmallKernelRow, 9> kRows = {{
      {SmallKernel::norm, "norm", Family::rowwise},
      {SmallKernel::head_norm, "head_norm", Family::rowwise},
      {SmallKernel::head_copy, "head_copy", Family::streaming},
      {SmallKernel::rotary_store, "rotary_store", Family::strided},
      {SmallKernel::activation, "activation", Family::swiglu},
      {SmallKernel::expert_choice, "expert_choice", Family::routing_scan},
      {SmallKernel::embedding_rows, "embedding_rows", Family::streaming},
      {SmallKernel::logits_cast, "logits_cast", Family::streaming},
      {SmallKernel::token_choice, "token_choice", Family::streaming},
  }};
  return kRows;
}

const SmallKernelRow& row_of_kind(SmallKernel kind) { return small_kernels()[static_cast<std::size_t>(kind)]; }

}  // namespace

const std::string& name_of(SmallKernel kind) { return row_of_kind(kind).name; }

const std::vector<std::string>& small_kernel_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const SmallKernelRow& row : small_kernels()) names.push_back(row.name);
    return names;
  }();
  return kNames;
}

std::optional<SmallKernel> small_kernel_named(const std::string& name) {
  const auto& all = small_kernels();
  const auto found = std::find_if(all.begin(), all.end(), [&](const SmallKernelRow& row) { return row.name == name; });
  return found == all.end() ? std::nullopt : std::optional(found->kind);
}

Family family_of(SmallKernel kind) { return row_of_kind(kind).family; }

Operator as_small(SmallKernel kind, Operator op) {
  op.measured_as = name_of(kind);
  return op;
}

bool is_small_kernel(const Operator& op) { return small_kernel_named(op.measured_as).has_value(); }

}  // namespace moeline
