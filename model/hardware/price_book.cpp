#include "hardware/price_book.hpp"

#include <functional>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/memo.hpp"

namespace moeline {

// By what tells most kernels of a step from each other.
std::size_t PriceBook::Hash::operator()(const View& view) const {
  const Operator& op = view.op;
  std::size_t hash = static_cast<std::size_t>(op.family);
  const auto add = [&hash](double value) { hash = hash * 1099511628211U + std::hash<double>{}(value); };
  for (const double value :
       {op.m, op.n, op.k, op.groups, op.flops, op.bytes, op.items, op.traffic.rdma_bytes, op.traffic.message_bytes,
        op.attention.batch, op.attention.kv_len, op.experts.rows.value_or(-1)}) {
    add(value);
  }
  add(static_cast<double>(op.traffic.stage));
  add(view.conditions.sms + (view.conditions.overlapped ? 0.5 : 0));
  return hash;
}

std::shared_ptr<const Price> PriceBook::price(const Operator& op, const PriceConditions& conditions) {
  constexpr std::size_t kMost = 1 << 14;  // 20 MB
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = prices_.find(View{op, conditions}); found != prices_.end()) return found->second;
  }
  auto price = std::make_shared<const Price>(moeline::price(op, conditions, machine_, kernels_));
  const std::scoped_lock lock(mutex_);
  if (prices_.size() >= kMost) prices_.clear();
  return prices_.emplace(Key{op, conditions}, std::move(price)).first->second;
}

std::shared_ptr<PriceBook> prices_of(const std::shared_ptr<const HardwareProfile>& profile, const std::string& set,
                                     const std::string& needed, const Libraries& libraries) {
  // The profile is known by where it lies, and stays there as long as its books are known.
  using Book = std::pair<std::shared_ptr<const HardwareProfile>, std::shared_ptr<PriceBook>>;
  constexpr std::size_t kMostBooks = 8;
  static Memo<std::tuple<const HardwareProfile*, std::string, std::string, Libraries>, Book> books(kMostBooks);
  const auto make = [&] {
    return Book{profile, std::make_shared<PriceBook>(profile->facts, kernels_by(*profile, set, needed, libraries))};
  };
  return books.get({profile.get(), set, needed, libraries}, make)->second;
}

}  // namespace moeline
