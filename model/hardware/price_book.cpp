#include "hardware/price_book.hpp"

#include <functional>

namespace moeline {

// By what tells most kernels of a step from each other.
std::size_t PriceBook::Hash::operator()(const View& view) const {
  const Operator& op = view.op;
  std::size_t hash = static_cast<std::size_t>(op.family);
  const auto add = [&hash](double value) { hash = hash * 1099511628211U + std::hash<double>{}(value); };
  for (const double value : {op.m, op.n, op.k, op.groups, op.flops, op.bytes, op.items, op.traffic.rdma_bytes,
                             op.traffic.message_bytes, op.attention.batch, op.attention.kv_len, op.experts.rows}) {
    add(value);
  }
  add(static_cast<double>(op.traffic.stage));
  add(view.conditions.sms + (view.conditions.overlapped ? 0.5 : 0));
  return hash;
}

const Price& PriceBook::price(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                              const KernelSet& kernels) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = prices_.find(View{op, conditions}); found != prices_.end()) return *found->second;
  }
  auto price = std::make_unique<const Price>(moeline::price(op, conditions, machine, kernels));
  const std::scoped_lock lock(mutex_);
  return *prices_.emplace(Key{op, conditions}, std::move(price)).first->second;
}

}  // namespace moeline
