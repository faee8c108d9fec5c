// Prices of one machine's kernel set, each worked out once: a step has the same kernels in many places, and a search
// runs the same kernels in many orders.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "hardware/price.hpp"

namespace moeline {

/// Thread-safe; prices stay where they are.
class PriceBook {
 public:
  /// REQUIRES: the same machine and kernels at every call.
  [[nodiscard]] const Price& price(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                                   const KernelSet& kernels);

 private:
  struct Key {
    Operator op;
    PriceConditions conditions;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<const Price>, Hash> prices_;
};

}  // namespace moeline
