#include "experiments/learn/alignment.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace moeline {
namespace {

using Cost = float;
constexpr Cost kNever = std::numeric_limits<Cost>::infinity();

bool passes_over_memory(KernelKind kind) {
  switch (kind) {
    case KernelKind::norm:
    case KernelKind::rotary:
    case KernelKind::activation:
    case KernelKind::quantise:
    case KernelKind::routing:
    case KernelKind::embedding:
    case KernelKind::token_choice:
    case KernelKind::state:
    case KernelKind::rest:
    case KernelKind::plain:
      return true;
    default:
      return false;
  }
}

// Of many more or far fewer FLOPs than the operator: a library may split one, or pad it.
bool is_other_product(const AlignedKernel& kernel, const AlignedOperator& op) {
  constexpr double kFar = 4;
  if (kernel.flops <= 0 || op.flops <= 0) return false;
  return kernel.flops > kFar * op.flops || op.flops > kFar * kernel.flops;
}

// The operator begins with this kernel.
Cost cost_of_first(const AlignedKernel& kernel, const AlignedOperator& op) {
  if (!kernel.name.empty() && kernel.name == op.name) return -1;
  if (kernel.kinds.has(op.kind)) return is_other_product(kernel, op) ? 8 : 0;
  // Experts may be products one by one, and attention two of them with a softmax between.
  if (op.kind == KernelKind::experts && kernel.kinds.has(KernelKind::product)) return 1;
  if (op.kind == KernelKind::attention && kernel.kinds.has(KernelKind::product)) return 1.2F;
  if (kernel.kinds.has(KernelKind::plain) && passes_over_memory(op.kind)) return 0.8F;
  if (op.kind == KernelKind::plain && passes_over_memory(op.kind) && kernel.kinds.has(KernelKind::quantise))
    return 0.8F;
  return kNever;
}

// What an operator of its own must stand for, and never a part of one of another kind.
bool is_own_work(const AlignedKernel& kernel) {
  constexpr std::array<KernelKind, 7> kOwn = {KernelKind::product,    KernelKind::experts,  KernelKind::attention,
                                              KernelKind::collective, KernelKind::dispatch, KernelKind::combine,
                                              KernelKind::embedding};
  return std::any_of(kOwn.begin(), kOwn.end(), [&](KernelKind kind) { return kernel.kinds.has(kind); });
}

// It is one more of the operator's kernels.
Cost cost_of_more(const AlignedKernel& kernel, const AlignedOperator& op) {
  if (kernel.kinds.has(KernelKind::rest)) return passes_over_memory(op.kind) ? 1 : 0.1F;
  if (!kernel.name.empty() && kernel.name == op.name) return 0.1F;
  if (kernel.kinds.has(op.kind)) {
    // A second product or core is a second operator.
    return passes_over_memory(op.kind) || op.kind == KernelKind::attention ? 0.2F : 1.6F;
  }
  if (op.kind == KernelKind::attention && kernel.kinds.has(KernelKind::product)) return 0.6F;
  if (kernel.kinds.has(KernelKind::plain)) return passes_over_memory(op.kind) ? 0.6F : 1;
  return is_own_work(kernel) ? kNever : 1.3F;  // the model may have it fused: a norm in an all-reduce, a cast in a GEMM
}

Cost cost_of_no_operator(const AlignedKernel& kernel) {
  if (is_own_work(kernel)) return 4;
  return kernel.kinds.has(KernelKind::plain) ? 1.1F : 1.5F;
}

// `before`: the kernel in front of where it would stand, which may do its work.
Cost cost_of_no_kernel(const AlignedOperator& op, const AlignedKernel* before) {
  if (before != nullptr && before->kinds.has(op.kind) && passes_over_memory(op.kind)) return 0.3F;
  switch (op.kind) {
    case KernelKind::product:
    case KernelKind::experts:
    case KernelKind::attention:
      return 6;
    case KernelKind::collective:
    case KernelKind::dispatch:
    case KernelKind::combine:
      return 3;
    default:
      return 1;
  }
}

// How the best assignment of so many kernels and operators ends.
enum class Last : std::uint8_t { none, first, more, no_operator, no_kernel };

// By kernels and operators so far. Whether the last kernel is of the last operator is told apart, because only then may
// the next kernel be one more of it.
class Table {
 public:
  Table(std::size_t kernels, std::size_t operators)
      : width_(operators + 1), of_last_((kernels + 1) * width_), any_((kernels + 1) * width_) {}
  Last& of_last(std::size_t i, std::size_t j) { return of_last_[i * width_ + j]; }
  Last& any(std::size_t i, std::size_t j) { return any_[i * width_ + j]; }

 private:
  std::size_t width_;
  std::vector<Last> of_last_, any_;
};

// Costs of the first kernels, by operators.
struct Row {
  explicit Row(std::size_t operators) : of_last(operators + 1, kNever), any(operators + 1, kNever) {}
  std::vector<Cost> of_last, any;

  void take(std::size_t j, Cost cost, Last last, Last& into) {
    if (cost >= any[j]) return;
    any[j] = cost;
    into = last;
  }
};

// The costs of `i` kernels from those of one fewer. `kernel`: the last of them; null of none.
Row next_row(const Row& before, const AlignedKernel* kernel, const std::vector<AlignedOperator>& operators,
             std::size_t i, Table& table) {
  Row now(operators.size());
  if (kernel == nullptr) now.any[0] = 0;
  for (std::size_t j = 0; j <= operators.size(); ++j) {
    Last& any = table.any(i, j);
    if (kernel != nullptr && j > 0) {
      const Cost first = before.any[j - 1] + cost_of_first(*kernel, operators[j - 1]);
      const Cost more = before.of_last[j] + cost_of_more(*kernel, operators[j - 1]);
      now.of_last[j] = std::min(first, more);
      table.of_last(i, j) = more < first ? Last::more : Last::first;
      now.take(j, now.of_last[j], Last::none, any);
    }
    if (kernel != nullptr) now.take(j, before.any[j] + cost_of_no_operator(*kernel), Last::no_operator, any);
    if (j > 0) now.take(j, now.any[j - 1] + cost_of_no_kernel(operators[j - 1], kernel), Last::no_kernel, any);
  }
  return now;
}

std::vector<std::int32_t> traced_back(Table& table, std::size_t kernels, std::size_t operators) {
  std::vector<std::int32_t> of_kernel(kernels, kUnassigned);
  bool of_last = false;
  for (std::size_t i = kernels, j = operators; i > 0 || j > 0;) {
    const Last last = of_last || table.any(i, j) == Last::none ? table.of_last(i, j) : table.any(i, j);
    of_last = last == Last::more;
    if (last == Last::first || last == Last::more) of_kernel[i - 1] = static_cast<std::int32_t>(j - 1);
    if (last == Last::first || last == Last::no_kernel) --j;
    if (last != Last::no_kernel) --i;
  }
  return of_kernel;
}

}  // namespace

std::vector<std::int32_t> align(const std::vector<AlignedKernel>& kernels,
                                const std::vector<AlignedOperator>& operators) {
  Table table(kernels.size(), operators.size());
  Row row(operators.size());
  for (std::size_t i = 0; i <= kernels.size(); ++i) {
    row = next_row(row, i > 0 ? &kernels[i - 1] : nullptr, operators, i, table);
  }
  return traced_back(table, kernels.size(), operators.size());
}

}  // namespace moeline
